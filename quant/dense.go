package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// size is the bytes of one element of a dense kind.
func (k Kind) size() int {
	switch k {
	case BF16, F16:
		return 2
	case F32:
		return 4
	}
	panic(fmt.Sprintf("quant: %v has no elements", Format{Kind: k}))
}

// Float is the element of a dense kind at the start of b, little-endian, exactly.
func (k Kind) Float(b []byte) float32 {
	switch k {
	case BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	case F16:
		return widenF16(binary.LittleEndian.Uint16(b))
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	}
	panic(fmt.Sprintf("quant: element of %v", Format{Kind: k}))
}

// Append appends x to b as an element of a dense kind, rounded to nearest, ties to even. x is no NaN.
func (k Kind) Append(b []byte, x float32) []byte {
	bits := math.Float32bits(x)
	switch k {
	case BF16:
		return binary.LittleEndian.AppendUint16(b, uint16((bits+0x7fff+bits>>16&1)>>16))
	case F16:
		return binary.LittleEndian.AppendUint16(b, roundF16(x))
	case F32:
		return binary.LittleEndian.AppendUint32(b, bits)
	}
	panic(fmt.Sprintf("quant: element of %v", Format{Kind: k}))
}

// A binary16 has 5 bits of exponent, biased by 15, and 10 of mantissa.
const (
	f16Infinity = 0x7c00
	f16Normal   = 0x1p-14 // the smallest normal number
	f16Step     = 0x1p-24 // the smallest subnormal one
	f16Overflow = 65520   // halfway from the largest to what would come next
)

func widenF16(h uint16) float32 {
	sign, exponent, mantissa := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0:
		return math.Float32frombits(math.Float32bits(float32(mantissa)*f16Step) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}

func roundF16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, magnitude := uint16(bits>>16)&0x8000, math.Float32frombits(bits&^(1<<31))
	switch {
	case magnitude >= f16Overflow:
		return sign | f16Infinity
	case magnitude < f16Normal:
		return sign | uint16(math.RoundToEven(float64(magnitude/f16Step)))
	}
	rounded := bits&0x7fffffff + 0xfff + bits>>13&1
	return sign | uint16(rounded>>13-112<<10)
}
