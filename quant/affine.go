package quant

import "math"

// Codes are packed as MLX does it: a row is one string of bits, least significant first, in which code i
// has bits [i·b, (i+1)·b). Eight codes are b whole bytes; 32 are b whole words, in which a device may keep them.
const codesPerPack = 8

// Unpack reads len(dst) codes, a multiple of 8, from the start of packed.
func Unpack(dst []uint8, packed []byte, bits int) {
	mask := uint64(1)<<bits - 1
	for ; len(dst) > 0; dst = dst[codesPerPack:] {
		var word uint64
		for i := range bits {
			word |= uint64(packed[i]) << (8 * i)
		}
		packed = packed[bits:]
		for i := range codesPerPack {
			dst[i] = uint8(word & mask)
			word >>= bits
		}
	}
}

// appendPacked appends codes, a multiple of 8, to b.
func appendPacked(b []byte, codes []uint8, bits int) []byte {
	for ; len(codes) > 0; codes = codes[codesPerPack:] {
		var word uint64
		for i := range codesPerPack {
			word |= uint64(codes[i]) << (i * bits)
		}
		for i := range bits {
			b = append(b, byte(word>>(8*i)))
		}
	}
	return b
}

// affine widens a matrix of one row.
func (m Matrix) affine(dst []float64) {
	codes := make([]uint8, m.Cols)
	Unpack(codes, m.Data, m.Format.Bits)
	size := m.ScaleKind.size()
	for k, q := range codes {
		at := k / m.Format.Group * size
		scale, bias := float64(m.ScaleKind.Float(m.Scales[at:])), float64(m.ScaleKind.Float(m.Biases[at:]))
		dst[k] = math.FMA(scale, float64(q), bias)
	}
}

// Widen is m with codes of more bits. The codes are the same numbers, so every weight keeps its value, and
// a product its bits: matrices of several widths can make one weight.
func (m Matrix) Widen(bits int) Matrix {
	if m.Format.Bits == bits {
		return m
	}
	out := m
	out.Format.Bits = bits
	out.Data = make([]byte, 0, m.Rows*out.Format.RowBytes(m.Cols))
	codes := make([]uint8, m.Format.Group)
	for size := m.Format.RowBytes(m.Format.Group); len(m.Data) > 0; m.Data = m.Data[size:] {
		Unpack(codes, m.Data, m.Format.Bits)
		out.Data = appendPacked(out.Data, codes, bits)
	}
	return out
}
