package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// The benchmarks need -gpu and report bytes that an operator has to move: of weights for
// matrix products, of everything for the rest. BenchmarkAdd is the measure of the memory.

const repeats = 50 // operators of a pass, so that a launch's way to the GPU does not show

// bench times passes of repeats operators that move so many bytes each.
func bench(b *testing.B, d backend.Device, bytes int64, record func(p backend.Pass)) {
	run := func() {
		p := d.Begin()
		for range repeats {
			record(p)
		}
		if err := p.Commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	run() // compiles the kernel
	b.ResetTimer()
	for range b.N {
		run()
	}
	each := b.Elapsed().Seconds() / float64(b.N*repeats)
	b.ReportMetric(float64(bytes)/each/1e9, "GB/s")
	b.ReportMetric(each*1e6, "µs/op")
	b.ReportMetric(0, "ns/op")
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func benchWeight(b *testing.B, d backend.Device, s backend.WeightShape) backend.Weight {
	w := must(d.NewWeight(s))(b)
	rng := rand.New(rand.NewPCG(1, 2))
	m := quant.Matrix{Rows: s.Rows, Cols: s.Cols, Format: s.Format, ScaleKind: quant.BF16, Data: make([]byte, s.Rows*s.Format.RowBytes(s.Cols))}
	for i := range m.Data {
		m.Data[i] = byte(rng.Uint32())
	}
	if s.Format.Kind == quant.BF16 {
		for i := 1; i < len(m.Data); i += 2 {
			m.Data[i] = m.Data[i]&0x83 | 0x3c // no NaN, nothing huge
		}
	}
	if s.Format.Kind == quant.Affine {
		m.Scales = make([]byte, 2*s.Rows*s.Cols/s.Format.Group)
		m.Biases = make([]byte, len(m.Scales))
		for i := range m.Scales {
			m.Scales[i], m.Biases[i] = byte(0x3c*(i%2)), byte(0xbc*(i%2))
		}
	}
	for e := range s.Experts {
		if err := d.Fill(w, backend.Slot{Expert: e}, m); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

func BenchmarkAdd(b *testing.B) {
	d := device(b)
	defer d.Close()
	const rows, cols = 4096, 16384
	x, y := must(d.NewBuffer(rows, cols))(b), must(d.NewBuffer(rows, cols))(b)
	z := must(d.NewBuffer(rows, cols))(b)
	bench(b, d, 3*4*rows*cols, func(p backend.Pass) { p.Add(z, x, y) })
}

func BenchmarkMatMul(b *testing.B) {
	d := device(b)
	defer d.Close()
	formats := []quant.Format{{Kind: quant.Affine, Bits: 4, Group: 64}, {Kind: quant.Affine, Bits: 8, Group: 64}, {Kind: quant.Affine, Bits: 6, Group: 64}, {Kind: quant.BF16}}
	for _, size := range [][2]int{{28672, 8192}, {3072, 2048}, {11776, 2048}} {
		for _, f := range formats {
			w := benchWeight(b, d, backend.WeightShape{Experts: 1, Rows: size[0], Cols: size[1], Format: f})
			for _, rows := range []int{1, 2, 4, 8, 16, 32, 512} {
				x, y := must(d.NewBuffer(rows, size[1]))(b), must(d.NewBuffer(rows, size[0]))(b)
				b.Run(fmt.Sprintf("%v/%dx%d/rows=%d", f, size[0], size[1], rows), func(b *testing.B) {
					bench(b, d, w.Bytes(), func(p backend.Pass) { p.MatMul(y, x, w) })
				})
			}
		}
	}
}

func BenchmarkExpertMatMul(b *testing.B) {
	d := device(b)
	defer d.Close()
	const experts, outs, cols, top = 64, 3072, 2048, 4
	w := benchWeight(b, d, backend.WeightShape{Experts: experts, Rows: outs, Cols: cols, Format: quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}})
	rng := rand.New(rand.NewPCG(3, 4))
	for _, rows := range []int{1, 4, 8, 16, 32, 512} {
		x, y := must(d.NewBuffer(rows, cols))(b), must(d.NewBuffer(rows*top, outs))(b)
		logits := must(d.NewBuffer(rows, experts))(b)
		values := make([]float32, rows*experts)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		if err := d.Write(logits, values); err != nil {
			b.Fatal(err)
		}
		routes := must(d.(backend.MoEDevice).NewRoutes(rows, top))(b)
		distinct := int64(min(experts, rows*top)) // an upper bound
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			p := d.Begin()
			p.(backend.MoEPass).Route(routes, logits, nil, backend.Router{TopK: top, Normalize: true, Scale: 1})
			if err := p.Commit(context.Background()); err != nil {
				b.Fatal(err)
			}
			bench(b, d, w.Bytes()/experts*distinct, func(p backend.Pass) { p.(backend.MoEPass).ExpertMatMul(y, x, w, routes) })
		})
		b.Run(fmt.Sprintf("route/rows=%d", rows), func(b *testing.B) {
			bench(b, d, int64(rows*experts*4), func(p backend.Pass) {
				p.(backend.MoEPass).Route(routes, logits, nil, backend.Router{TopK: top, Normalize: true, Scale: 1})
			})
		})
	}
}

func BenchmarkAttend(b *testing.B) {
	d := device(b)
	defer d.Close()
	const heads, kvHeads, dim = 32, 8, 64
	for _, c := range []struct{ lanes, rows, keys int }{{1, 1, 1024}, {1, 1, 8192}, {16, 1, 1024}, {1, 512, 1024}} {
		pages := (c.keys + backend.PageKeys - 1) / backend.PageKeys
		kv := must(d.NewKV(backend.KVShape{Layers: 1, Pages: pages * c.lanes, Heads: kvHeads, Dim: dim}))(b)
		var r backend.Rows
		for l := range c.lanes {
			var table []int32
			for i := range pages {
				table = append(table, int32(l*pages+i))
			}
			r.Pages = append(r.Pages, table)
			for i := range c.rows {
				r.Lane, r.Pos = append(r.Lane, int32(l)), append(r.Pos, int32(c.keys-c.rows+i))
			}
		}
		n := c.lanes * c.rows
		q, out := must(d.NewBuffer(n, heads*dim))(b), must(d.NewBuffer(n, heads*dim))(b)
		b.Run(fmt.Sprintf("lanes=%d/rows=%d/keys=%d", c.lanes, c.rows, c.keys), func(b *testing.B) {
			bench(b, d, int64(c.lanes*c.keys*kvHeads*dim*4), func(p backend.Pass) { p.Attend(out, q, kv, 0, r) })
		})
	}
}

func BenchmarkRMSNorm(b *testing.B) {
	d := device(b)
	defer d.Close()
	const cols = 2048
	gain := must(d.NewBuffer(1, cols))(b)
	for _, rows := range []int{1, 16, 512} {
		x, y := must(d.NewBuffer(rows, cols))(b), must(d.NewBuffer(rows, cols))(b)
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			bench(b, d, int64(2*4*rows*cols), func(p backend.Pass) { p.RMSNorm(y, x, gain, 1e-5) })
		})
	}
}
