package contract

import (
	"context"
	"math"
	"math/rand/v2"

	"tfbatch/internal/backend"
)

// lab is a device and a source of values.
type lab struct {
	d   backend.Device
	rng *rand.Rand

	int8 bool // products with affine weights are those of ../I8.md
}

func newLab(d backend.Device) *lab {
	return &lab{d: d, rng: rand.New(rand.NewPCG(7, 11))}
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

// cancelling mixes magnitudes, so that almost any other order shows in the result. They stay
// within f16, which would turn the larger ones into infinities that hide an order.
func cancelling(rng *rand.Rand) float32 {
	return float32(rng.NormFloat64() * math.Ldexp(1, rng.IntN(24)-12))
}

// tiny is around and below the smallest normal number.
func tiny(rng *rand.Rand) float32 {
	return float32(rng.NormFloat64() * math.Ldexp(1, -120-rng.IntN(20)))
}

// border is around the magnitude below which a unit of inputs counts as zeros in I8.md.
func border(rng *rand.Rand) float32 {
	return float32(rng.NormFloat64() * math.Ldexp(1, -100-rng.IntN(4)))
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
	if err != nil {
		l.fail("%s: %v", what, err)
	}
}

// empty is a new buffer filled with a value that no operator may leave behind.
func (l *lab) empty(rows, cols int) backend.Buffer {
	junk := newMatrix(rows, cols)
	for i := range junk {
		for j := range junk[i] {
			junk[i][j] = -12345
		}
	}
	return l.buffer(junk)
}

func (l *lab) buffer(m matrix) backend.Buffer {
	b, err := l.d.NewBuffer(len(m), len(m[0]))
	l.ok("new buffer", err)
	l.ok("write", l.d.Write(b, m.flat()))
	return b
}

// run records operators, commits them and returns the rows of out.
func (l *lab) run(out backend.Buffer, record func(p backend.Pass)) matrix {
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
	if len(got) != len(want) {
		l.fail("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		for j, w := range want[i] {
			g := got[i][j]
			if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
				l.fail("%s: %w: row %d, column %d: %x, want %x", what, ErrDifferent, i, j, g, w)
			}
		}
	}
}
