package loader

import (
	"fmt"
	"math"
)

// DType is a tensor's element type, spelt as in a safetensors header.
type DType string

// The element types that are accepted. F64, complex and sub-byte types are refused:
// no checkpoint of a language model stores weights in them.
const (
	BF16   DType = "BF16"
	F16    DType = "F16"
	F32    DType = "F32"
	F8E4M3 DType = "F8_E4M3"
	F8E5M2 DType = "F8_E5M2"
	F8E8M0 DType = "F8_E8M0" // a power of two: the scale of a microscaling block
	I8     DType = "I8"
	I16    DType = "I16"
	I32    DType = "I32"
	I64    DType = "I64"
	U8     DType = "U8"
	U16    DType = "U16"
	U32    DType = "U32"
	U64    DType = "U64"
	Bool   DType = "BOOL"
)

// Size is the bytes of one element, 0 for a type that is not accepted.
func (d DType) Size() int64 {
	switch d {
	case F8E4M3, F8E5M2, F8E8M0, I8, U8, Bool:
		return 1
	case BF16, F16, I16, U16:
		return 2
	case F32, I32, U32:
		return 4
	case I64, U64:
		return 8
	}
	return 0
}

// Tensor places a tensor in its shard. Its elements are row-major, little-endian.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int // shared with the snapshot: not to be changed
	Shard  string
	Offset int64 // from the start of the shard
	Size   int64 // bytes
}

// bytes is what dtype and shape come to. Both are checked: an unknown type, a
// negative dimension or a product past 63 bits is an error.
func (t Tensor) bytes() (int64, error) {
	n := t.DType.Size()
	if n == 0 {
		return 0, fmt.Errorf("dtype %.20q is none of BF16, F16, F32, F8_E4M3, F8_E5M2, F8_E8M0, I8 to I64, U8 to U64, BOOL", t.DType)
	}
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", t.Shape)
		}
		if d > 0 && n > math.MaxInt64/int64(d) {
			return 0, fmt.Errorf("shape %v of %s overflows", t.Shape, t.DType)
		}
		n *= int64(d)
	}
	return n, nil
}
