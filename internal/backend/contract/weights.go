package contract

import (
	"encoding/binary"
	"fmt"
	"math"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// storage is how a weight is stored: a format, and for an affine one the kind of its scales.
type storage struct {
	quant.Format
	scales quant.Kind
}

func (s storage) String() string {
	if s.Kind != quant.Affine {
		return s.Format.String()
	}
	return fmt.Sprintf("%v %v", s.Format, quant.Format{Kind: s.scales})
}

// cols is n rounded up to what a row can have.
func (s storage) cols(n int) int {
	if s.Kind != quant.Affine {
		return n
	}
	return (n + s.Group - 1) / s.Group * s.Group
}

func bf16Storage() storage { return storage{Format: quant.Format{Kind: quant.BF16}} }

// storages are those of every device: the dense ones, every width of code and every group, and scales
// of every kind.
func storages() []storage {
	affine := func(bits, group int, scales quant.Kind) storage {
		return storage{quant.Format{Kind: quant.Affine, Bits: bits, Group: group}, scales}
	}
	return []storage{
		bf16Storage(), {Format: quant.Format{Kind: quant.F16}}, {Format: quant.Format{Kind: quant.F32}},
		affine(4, 64, quant.BF16), affine(4, 32, quant.F16), affine(4, 128, quant.F32),
		affine(8, 64, quant.F32), affine(8, 32, quant.BF16), affine(8, 128, quant.F16),
		affine(2, 64, quant.F16), affine(3, 128, quant.BF16), affine(5, 32, quant.F32), affine(6, 64, quant.BF16),
	}
}

// weights are the values that a stored matrix stands for, by output.
type weights struct {
	dense          matrix    // empty where the storage is affine
	codes          [][]uint8 // as many as inputs
	scales, biases matrix    // one for each group
	product8       bool      // products are those of I8.md
}

func (w *weights) outputs() int { return len(w.dense) + len(w.codes) }

func (w *weights) append(more weights) {
	w.dense, w.codes = append(w.dense, more.dense...), append(w.codes, more.codes...)
	w.scales, w.biases = append(w.scales, more.scales...), append(w.biases, more.biases...)
	w.product8 = more.product8
}

// product is x·wᵀ by the contract.
func (w *weights) product(x matrix) matrix {
	y := newMatrix(len(x), w.outputs())
	for i := range x {
		for o := range y[i] {
			switch {
			case w.dense != nil:
				y[i][o] = dot(w.dense[o], x[i])
			case w.product8:
				y[i][o] = dotInt8(w.codes[o], w.scales[o], w.biases[o], x[i])
			default:
				y[i][o] = dotAffine(w.codes[o], w.scales[o], w.biases[o], x[i])
			}
		}
	}
	return y
}

// row is what an embedding gives.
func (w *weights) row(o int) []float32 {
	if w.dense != nil {
		return w.dense[o]
	}
	row := make([]float32, len(w.codes[o]))
	for k, q := range w.codes[o] {
		u := k * len(w.scales[o]) / len(row)
		row[k] = backend.Flush(backend.FMA(w.scales[o][u], float32(q), w.biases[o][u]))
	}
	return row
}

// store draws a matrix and returns its bytes and what they stand for. An affine one has any codes, and
// scales and biases drawn by v.
func (l *lab) store(s storage, rows, cols int, v values) (quant.Matrix, weights) {
	q := quant.Matrix{Rows: rows, Cols: cols, Format: s.Format}
	if s.Kind != quant.Affine {
		seen := weights{dense: newMatrix(rows, cols)}
		q.Data = l.elements(seen.dense, s.Kind, v)
		return q, seen
	}
	seen := weights{product8: l.int8, scales: newMatrix(rows, cols/s.Group), biases: newMatrix(rows, cols/s.Group)}
	q.Data = make([]byte, rows*s.RowBytes(cols))
	for i := range q.Data {
		q.Data[i] = byte(l.rng.Uint32())
	}
	for r := range rows {
		codes := make([]uint8, cols)
		quant.Unpack(codes, q.Data[r*s.RowBytes(cols):], s.Bits)
		seen.codes = append(seen.codes, codes)
	}
	q.ScaleKind = s.scales
	q.Scales, q.Biases = l.elements(seen.scales, s.scales, v), l.elements(seen.biases, s.scales, v)
	return q, seen
}

// elements fills m with values of a dense kind, flushed, and returns their bytes.
func (l *lab) elements(m matrix, kind quant.Kind, v values) (data []byte) {
	for _, row := range m {
		for i := range row {
			data, row[i] = appendWeight(data, v(l.rng), kind)
			row[i] = backend.Flush(row[i])
		}
	}
	return data
}

func appendWeight(to []byte, x float32, kind quant.Kind) ([]byte, float32) {
	switch kind {
	case quant.BF16:
		h := backend.RoundBF16(x)
		return binary.LittleEndian.AppendUint16(to, h), backend.WidenBF16(h)
	case quant.F16:
		h := roundF16(x)
		return binary.LittleEndian.AppendUint16(to, h), backend.WidenF16(h)
	}
	return binary.LittleEndian.AppendUint32(to, math.Float32bits(x)), x
}

// roundF16 truncates x to a binary16 that is near; which one does not matter here.
func roundF16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := math.Float32frombits(bits &^ (1 << 31))
	switch {
	case x != x:
		return 0x7e01
	case magnitude >= 65536:
		return sign | 0x7c00
	case magnitude < 0x1p-14:
		return sign | uint16(magnitude*0x1p24)
	}
	return sign | uint16(bits>>13&0x3ffff-112<<10)
}

// weight makes a resident weight of one expert from matrices of so many outputs, joined.
func (l *lab) weight(s storage, inputs int, v values, outputs ...int) (backend.Weight, weights) {
	rows := 0
	for _, n := range outputs {
		rows += n
	}
	w, err := l.d.NewWeight(backend.WeightShape{Experts: 1, Rows: rows, Cols: inputs, Format: s.Format, ScaleKind: s.scales})
	l.ok("new weight", err)
	var seen weights
	for _, n := range outputs {
		q, more := l.store(s, n, inputs, v)
		l.ok("fill", l.d.Fill(w, backend.Slot{Row: seen.outputs()}, q))
		seen.append(more)
	}
	return w, seen
}

// experts is a weight of several matrices.
func (l *lab) experts(s storage, n, rows, cols int) (backend.Weight, []weights) {
	w, err := l.d.NewWeight(backend.WeightShape{Experts: n, Rows: rows, Cols: cols, Format: s.Format, ScaleKind: s.scales})
	l.ok("new weight", err)
	var seen []weights
	for e := range n {
		q, one := l.store(s, rows, cols, gauss)
		l.ok("fill", l.d.Fill(w, backend.Slot{Expert: e}, q))
		seen = append(seen, one)
	}
	return w, seen
}
