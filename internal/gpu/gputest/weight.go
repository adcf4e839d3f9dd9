package gputest

import (
	"encoding/binary"
	"math"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// weight is a matrix as a checkpoint stores it and as numbers.
type weight struct {
	matrix        quant.Matrix
	codes         [][]float32 // [rows][cols]
	scale, offset [][]float32 // [rows][units], nil for a dense weight
	cols, unit    int
}

// unit is the inputs of a unit of the dot.
func unit(f quant.Format) int {
	if f.Kind == quant.Affine {
		return f.Group
	}
	return 64
}

// weight draws a matrix.
func (b *bench) weight(f quant.Format, scales quant.Kind, rows, cols int) *weight {
	w := &weight{cols: cols, unit: unit(f), codes: make([][]float32, rows)}
	w.matrix = quant.Matrix{Rows: rows, Cols: cols, Format: f, ScaleKind: scales}
	if f.Kind == quant.Affine {
		w.scale, w.offset = make([][]float32, rows), make([][]float32, rows)
	}
	for r := range rows {
		w.codes[r] = make([]float32, cols)
		if f.Kind != quant.Affine {
			for k := range cols {
				w.matrix.Data, w.codes[r][k] = b.number(w.matrix.Data, f.Kind)
			}
			continue
		}
		w.matrix.Data = append(w.matrix.Data, b.affineRow(w.codes[r], f.Bits)...)
		for range cols / f.Group {
			var s, o float32
			w.matrix.Scales, s = b.number(w.matrix.Scales, scales)
			w.matrix.Biases, o = b.number(w.matrix.Biases, scales)
			w.scale[r], w.offset[r] = append(w.scale[r], s), append(w.offset[r], o)
		}
	}
	return w
}

// affineRow draws the codes of a row and packs them, the first in the lowest bits.
func (b *bench) affineRow(codes []float32, bits int) []byte {
	row := make([]byte, len(codes)*bits/8)
	for k := range codes {
		c := b.rng.IntN(1 << bits)
		codes[k] = float32(c)
		for j := range bits {
			at := k*bits + j
			row[at/8] |= byte(c>>j&1) << (at % 8)
		}
	}
	return row
}

// number draws a value of a kind, subnormal ones among them.
func (b *bench) number(to []byte, kind quant.Kind) ([]byte, float32) {
	x := b.values(1)[0]
	if b.rng.IntN(50) == 0 {
		x = float32(math.Ldexp(float64(x), -130))
	}
	switch kind {
	case quant.BF16:
		h := backend.RoundBF16(x)
		return binary.LittleEndian.AppendUint16(to, h), backend.Flush(backend.WidenBF16(h))
	case quant.F16:
		h := uint16(b.rng.IntN(0x7c00)) | uint16(b.rng.IntN(2))<<15
		return binary.LittleEndian.AppendUint16(to, h), backend.WidenF16(h)
	}
	return binary.LittleEndian.AppendUint32(to, math.Float32bits(x)), backend.Flush(x)
}

// fill makes w resident, in two parts that meet inside a tile.
func (b *bench) fill(w *weight) backend.Weight {
	b.t.Helper()
	m := w.matrix
	resident, err := b.d.NewWeight(backend.WeightShape{Experts: 1, Rows: m.Rows, Cols: m.Cols, Format: m.Format, ScaleKind: m.ScaleKind})
	b.ok(err)
	first, second := m, m
	first.Rows = m.Rows / 3
	second.Rows = m.Rows - first.Rows
	for _, part := range []struct{ all, first, second *[]byte }{
		{&m.Data, &first.Data, &second.Data}, {&m.Scales, &first.Scales, &second.Scales}, {&m.Biases, &first.Biases, &second.Biases},
	} {
		cut := len(*part.all) / m.Rows * first.Rows
		*part.first, *part.second = (*part.all)[:cut], (*part.all)[cut:]
	}
	b.ok(b.d.Fill(resident, backend.Slot{Row: first.Rows}, second))
	b.ok(b.d.Fill(resident, backend.Slot{}, first))
	return resident
}

// product is x·wᵀ for rows of x, by the contract.
func (w *weight) product(x []float32) []float32 {
	var y []float32
	for from := 0; from < len(x); from += w.cols {
		for r := range w.codes {
			y = append(y, w.dot(r, x[from:from+w.cols]))
		}
	}
	return y
}

func (w *weight) dot(row int, x []float32) float32 {
	const most = 8
	units := w.cols / w.unit
	chains := most
	for chains > units {
		chains /= 2
	}
	var acc [most]float32
	for u := range units {
		c := &acc[u%chains]
		codes, in := w.codes[row][u*w.unit:][:w.unit], x[u*w.unit:][:w.unit]
		if w.scale == nil {
			for k, v := range in {
				*c = backend.FMA(codes[k], v, *c)
			}
			continue
		}
		a, sum := float32(0), float32(0)
		for k, v := range in {
			a = backend.FMA(codes[k], v, a)
			sum += v
		}
		*c = backend.FMA(w.scale[row][u], a, *c)
		*c = backend.FMA(w.offset[row][u], sum, *c)
	}
	for s := chains / 2; s > 0; s /= 2 {
		for c := range s {
			acc[c] += acc[c+s]
		}
	}
	return backend.Flush(acc[0])
}

func (w *weight) embed(ids []int32) []float32 {
	var out []float32
	for _, id := range ids {
		for k, c := range w.codes[id] {
			if w.scale != nil {
				c = backend.Flush(backend.FMA(w.scale[id][k/w.unit], c, w.offset[id][k/w.unit]))
			}
			out = append(out, c)
		}
	}
	return out
}
