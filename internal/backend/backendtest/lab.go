package backendtest

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// lab is a device, a source of values and the test they serve.
type lab struct {
	t   testing.TB
	d   backend.Device
	rng *rand.Rand
}

func newLab(t testing.TB, d backend.Device) *lab {
	return &lab{t, d, rand.New(rand.NewPCG(7, 11))}
}

// matrix is a host matrix by rows.
type matrix [][]float32

func newMatrix(rows, cols int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float32, cols)
	}
	return m
}

// flat joins the rows.
func (m matrix) flat() []float32 {
	var all []float32
	for _, row := range m {
		all = append(all, row...)
	}
	return all
}

// values is a way to draw the entries of a matrix.
type values func(rng *rand.Rand) float32

// gauss is the usual case.
func gauss(rng *rand.Rand) float32 { return float32(rng.NormFloat64()) }

// cancelling mixes magnitudes, so that almost any other order shows in the result.
func cancelling(rng *rand.Rand) float32 {
	return float32(rng.NormFloat64() * math.Ldexp(1, rng.IntN(40)-20))
}

// tiny is around and below the smallest normal number.
func tiny(rng *rand.Rand) float32 {
	return float32(rng.NormFloat64() * math.Ldexp(1, -120-rng.IntN(20)))
}

// odd is mostly ordinary, with zeros of both signs, infinities and NaNs.
func odd(rng *rand.Rand) float32 {
	switch rng.IntN(300) {
	case 0:
		return float32(math.NaN())
	case 1:
		return float32(math.Inf(1 - 2*rng.IntN(2)))
	case 2, 3, 4:
		return float32(math.Copysign(0, -1))
	}
	return gauss(rng)
}

func (l *lab) draw(rows, cols int, v values) matrix {
	m := newMatrix(rows, cols)
	for i := range m {
		for j := range m[i] {
			m[i][j] = v(l.rng)
		}
	}
	return m
}

// flushed is m as a device sees it.
func flushed(m matrix) matrix {
	f := newMatrix(len(m), len(m[0]))
	for i := range m {
		for j, x := range m[i] {
			f[i][j] = backend.Flush(x)
		}
	}
	return f
}

func (l *lab) ok(what string, err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

// empty is a new buffer filled with a value that no operator may leave behind.
func (l *lab) empty(rows, cols int) backend.Buffer {
	l.t.Helper()
	junk := newMatrix(rows, cols)
	for i := range junk {
		for j := range junk[i] {
			junk[i][j] = -12345
		}
	}
	return l.buffer(junk)
}

func (l *lab) buffer(m matrix) backend.Buffer {
	l.t.Helper()
	b, err := l.d.NewBuffer(len(m), len(m[0]))
	l.ok("new buffer", err)
	l.ok("write", l.d.Write(b, m.flat()))
	return b
}

// run records operators, commits them and returns the rows of out.
func (l *lab) run(out backend.Buffer, record func(p backend.Pass)) matrix {
	l.t.Helper()
	rows, cols := out.Shape()
	flat := make([]float32, rows*cols)
	p := l.d.Begin()
	record(p)
	p.Read(flat, out)
	l.ok("commit", p.Commit(context.Background()))
	m := make(matrix, rows)
	for i := range m {
		m[i] = flat[i*cols : (i+1)*cols]
	}
	return m
}

// equal compares bits; a NaN equals a NaN.
func (l *lab) equal(what string, got, want matrix) {
	l.t.Helper()
	if len(got) != len(want) {
		l.t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		for j, w := range want[i] {
			g := got[i][j]
			if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				l.t.Fatalf("%s: row %d, column %d: %x, want %x", what, i, j, g, w)
			}
		}
	}
}

// store rounds m to a format and returns its bytes and the values that they stand for.
func store(m matrix, format quant.Format) (quant.Matrix, matrix) {
	q := quant.Matrix{Rows: len(m), Cols: len(m[0]), Format: format}
	seen := newMatrix(len(m), len(m[0]))
	for i := range m {
		for j, x := range m[i] {
			q.Data, seen[i][j] = appendWeight(q.Data, x, format.Kind)
			seen[i][j] = backend.Flush(seen[i][j])
		}
	}
	return q, seen
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

// weight makes a resident weight of one expert from whole matrices, joined by rows.
func (l *lab) weight(format quant.Format, parts ...matrix) (backend.Weight, matrix) {
	l.t.Helper()
	rows := 0
	for _, m := range parts {
		rows += len(m)
	}
	w, err := l.d.NewWeight(backend.WeightShape{Experts: 1, Rows: rows, Cols: len(parts[0][0]), Format: format})
	l.ok("new weight", err)
	var seen matrix
	for _, m := range parts {
		q, s := store(m, format)
		l.ok("fill", l.d.Fill(w, backend.Slot{Row: len(seen)}, q))
		seen = append(seen, s...)
	}
	return w, seen
}

// formats are the weight formats of every device.
func formats() []quant.Format {
	return []quant.Format{{Kind: quant.BF16}, {Kind: quant.F16}, {Kind: quant.F32}}
}
