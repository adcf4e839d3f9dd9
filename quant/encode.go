package quant

import (
	"fmt"
	"math"
)

// leastScale keeps a scale away from zero where all weights of a group are equal.
const leastScale = 1e-7

// Encode stores a dense matrix in an affine format as mx.quantize does it on the CPU, code for code:
// float32 arithmetic, ties to even, scales and biases in the type of the weights. (MLX on Metal rounds
// ties away from zero and takes 0 for the largest weight of a group without a positive one.)
//
// The end of a group that is farther from zero is exact before its scale and bias are rounded, and so is
// zero; a scale may be negative. A weight that is not finite, or so large that float32 cannot hold what
// the formula needs, is an error.
func Encode(m Matrix, f Format) (Matrix, error) {
	out := Matrix{Rows: m.Rows, Cols: m.Cols, Format: f, ScaleKind: m.Format.Kind}
	if err := m.Check(); err != nil {
		return out, err
	}
	if err := f.Check(); err != nil {
		return out, err
	}
	if m.Format.Kind == Affine || f.Kind != Affine || !f.Fits(m.Cols) {
		return out, fmt.Errorf("%v matrix [%d, %d] cannot become %v", m.Format, m.Rows, m.Cols, f)
	}
	scales := m.Rows * f.ScaleBytes(m.Cols, out.ScaleKind)
	out.Data = make([]byte, 0, m.Rows*f.RowBytes(m.Cols))
	out.Scales, out.Biases = make([]byte, 0, scales), make([]byte, 0, scales)
	weights, codes := make([]float32, f.Group), make([]uint8, f.Group)
	size := m.Format.Kind.size()
	for at := 0; at < len(m.Data); at += f.Group * size {
		for i := range weights {
			weights[i] = m.Format.Kind.Float(m.Data[at+i*size:])
		}
		scale, bias, ok := encodeGroup(codes, weights, f.Bits)
		if !ok {
			k := at / size
			return out, fmt.Errorf("row %d, inputs %d to %d: a NaN, an infinity, or weights too large to encode", k/m.Cols, k%m.Cols, k%m.Cols+f.Group-1)
		}
		out.Data = appendPacked(out.Data, codes, f.Bits)
		out.Scales, out.Biases = out.ScaleKind.Append(out.Scales, scale), out.ScaleKind.Append(out.Biases, bias)
	}
	return out, nil
}

// encodeGroup chooses scale and bias of a group, and its codes by them before they are rounded.
func encodeGroup(codes []uint8, weights []float32, bits int) (scale, bias float32, ok bool) {
	lo, hi := weights[0], weights[0]
	for _, w := range weights {
		lo, hi = min(lo, w), max(hi, w) // a NaN sticks
	}
	span := hi - lo
	if !(span <= math.MaxFloat32) {
		return 0, 0, false
	}
	most := float32(uint(1)<<bits - 1)
	scale = max(span/most, leastScale)
	edge := lo
	if abs(lo) <= abs(hi) {
		scale, edge = -scale, hi
	}
	q := rint(edge / scale)
	if abs(q) > math.MaxFloat32 {
		return 0, 0, false
	}
	if q != 0 {
		scale, bias = edge/q, edge
	}
	for i, w := range weights {
		codes[i] = uint8(min(max(rint(float32(w-bias)/scale), 0), most))
	}
	return scale, bias, true
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// rint rounds to the nearest whole number, ties to even.
func rint(x float32) float32 { return float32(math.RoundToEven(float64(x))) }
