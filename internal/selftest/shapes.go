package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/contract"
	"tfbatch/quant"
)

// served are the matrices of models that people run, inputs to outputs.
var served = []struct {
	model      string
	cols, rows int
}{
	{"LFM2-350M, gate and up", 1024, 9216}, {"LFM2-350M, down", 4608, 1024},
	{"LFM2-1.2B, q, k and v", 2048, 3072}, {"LFM2-1.2B, gate and up", 2048, 16384}, {"LFM2-1.2B, down", 8192, 2048},
	{"LFM2-8B-A1B, an expert", 2048, 3584}, {"LFM2-8B-A1B, an expert's down", 1792, 2048},
}

// kept are the ways that weights of such models are stored.
var kept = []quant.Format{{Kind: quant.BF16}, {Kind: quant.Affine, Bits: 4, Group: 64}, {Kind: quant.Affine, Bits: 8, Group: 64}}

// heights are the numbers of rows of a forward that kernels may differ by, and more.
var heights = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 25, 31, 32, 33, 48}

// shapes compare products of served matrices with the CPU's, of each number of rows: so that a row's bits do not
// depend on the rows beside it either.
func (o Options) shapes() []part {
	var all []part
	for _, s := range served {
		for _, f := range kept {
			name := fmt.Sprintf("shapes/%s, %v", s.model, f)
			all = append(all, part{name, func(ctx context.Context, d backend.Device) error {
				return o.products(ctx, d, f, s.rows, s.cols)
			}})
		}
	}
	return all
}

func (o Options) products(ctx context.Context, d backend.Device, f quant.Format, rows, cols int) (err error) {
	ref, err := o.CPU()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ref.Close()) }()
	random := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	m := randomMatrix(random, f, rows, cols)
	most := heights[len(heights)-1]
	x := make([]float32, most*cols)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	want, err := product(ctx, ref, m, x)
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	for _, n := range heights {
		got, err := product(ctx, d, m, x[:n*cols])
		if err != nil {
			return fmt.Errorf("%d rows: %w", n, err)
		}
		if err := sameBits(got, want, rows); err != nil {
			return fmt.Errorf("%d rows: %w", n, err)
		}
	}
	return nil
}

// product is x·mᵀ on d, by rows.
func product(ctx context.Context, d backend.Device, m quant.Matrix, x []float32) ([]float32, error) {
	w, err := d.NewWeight(backend.WeightShape{Experts: 1, Rows: m.Rows, Cols: m.Cols, Format: m.Format, ScaleKind: m.ScaleKind})
	if err != nil {
		return nil, err
	}
	n := len(x) / m.Cols
	in, err := d.NewBuffer(n, m.Cols)
	if err != nil {
		return nil, err
	}
	out, err := d.NewBuffer(n, m.Rows)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.Fill(w, backend.Slot{}, m), d.Write(in, x)); err != nil {
		return nil, err
	}
	y := make([]float32, n*m.Rows)
	p := d.Begin()
	p.MatMul(out, in, w)
	p.Read(y, out)
	return y, p.Commit(ctx)
}

func sameBits(got, want []float32, cols int) error {
	for i, g := range got {
		if math.Float32bits(g) != math.Float32bits(want[i]) {
			return fmt.Errorf("%w: row %d, column %d: %x, the CPU says %x", contract.ErrDifferent, i/cols, i%cols, g, want[i])
		}
	}
	return nil
}

// randomMatrix has weights of a model's size: any codes, and scales that make them small.
func randomMatrix(random *rand.Rand, f quant.Format, rows, cols int) quant.Matrix {
	m := quant.Matrix{Rows: rows, Cols: cols, Format: f}
	if f.Kind != quant.Affine {
		m.Data = smallHalves(random, rows*cols)
		return m
	}
	m.Data = make([]byte, rows*f.RowBytes(cols))
	for i := range m.Data {
		m.Data[i] = byte(random.Uint32())
	}
	m.ScaleKind = quant.BF16
	m.Scales, m.Biases = smallHalves(random, rows*cols/f.Group), smallHalves(random, rows*cols/f.Group)
	return m
}

// smallHalves are n bf16 numbers of either sign, 2^-8 to 2^-4 in size.
func smallHalves(random *rand.Rand, n int) []byte {
	const exponent, sizes = 119, 4 // 2^-8, and how many powers of two above it
	data := make([]byte, 2*n)
	for i := range n {
		r := random.Uint32()
		h := r>>31<<15 | (exponent+r>>8%sizes)<<7 | r&0x7f
		data[2*i], data[2*i+1] = byte(h), byte(h>>8)
	}
	return data
}
