package model

import (
	"encoding/binary"

	"tfbatch/quant"
)

// finite reports whether no element is a NaN or an infinity: those and only those have all exponent bits
// set. It looks at eight bytes at a time. Without the sign, an element is at most its exponent mask plus
// the mantissa below; masked, adding the exponent's lowest bit carries into the sign place exactly when
// the exponent is full, and never into a neighbour.
func finite(data []byte, kind quant.Kind) bool {
	var exponent, lowest, sign uint64
	switch kind {
	case quant.BF16:
		exponent, lowest, sign = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
	case quant.F16:
		exponent, lowest, sign = 0x7c00_7c00_7c00_7c00, 0x0400_0400_0400_0400, 0x8000_8000_8000_8000
	case quant.F32:
		exponent, lowest, sign = 0x7f80_0000_7f80_0000, 0x0080_0000_0080_0000, 0x8000_0000_8000_0000
	}
	var full uint64
	for ; len(data) >= 8; data = data[8:] {
		full |= binary.LittleEndian.Uint64(data)&exponent + lowest
	}
	var rest [8]byte
	copy(rest[:], data)
	full |= binary.LittleEndian.Uint64(rest[:])&exponent + lowest
	return full&sign == 0
}

// widen reads a vector as f32, which holds every value of the three kinds. Subnormals become zero, as
// they do wherever a device widens a weight.
func widen(data []byte, kind quant.Kind) []float32 {
	size := quant.Format{Kind: kind}.RowBytes(1)
	out := make([]float32, len(data)/size)
	for i := range out {
		out[i] = kind.Float(data[i*size:])
		if out[i] > -smallestNormal && out[i] < smallestNormal {
			out[i] = 0
		}
	}
	return out
}

const smallestNormal = 0x1p-126
