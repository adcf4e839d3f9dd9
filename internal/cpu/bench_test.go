package cpu

import (
	"fmt"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// BenchmarkMatMul reports weight bytes and multiply-adds per second; compare them with the
// limits that MatMulSpeed prints.
func BenchmarkMatMul(b *testing.B) {
	for _, k := range available() {
		for _, f := range benchmarked() {
			for _, rows := range []int{1, 2, 4, 8, 16, 64} {
				b.Run(fmt.Sprintf("%v/%v/rows=%d", k.isa, f, rows), func(b *testing.B) { benchmarkMatMul(b, k.isa, rows, 2048, 2048, f) })
			}
		}
	}
}

// benchmarked are the formats that the kernels treat differently.
func benchmarked() []quant.Format {
	affine := func(bits int) quant.Format { return quant.Format{Kind: quant.Affine, Bits: bits, Group: 64} }
	return []quant.Format{{Kind: quant.BF16}, {Kind: quant.F16}, {Kind: quant.F32}, affine(4), affine(6), affine(8)}
}

func benchmarkMatMul(b *testing.B, isa ISA, rows, k, n int, f quant.Format) {
	d, err := Open(Options{ISA: isa})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	p, err := newTrial(d, rows, k, n, f)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(p.w.region.bytes)))
	for b.Loop() {
		p.once()
	}
	b.ReportMetric(2*float64(rows*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// TestMatMulSpeedMeasures only demands numbers; which ones is not a matter of pass or fail.
func TestMatMulSpeedMeasures(t *testing.T) {
	s, err := MatMulSpeed(Options{Threads: 1}, 1, 256, 256, quant.Format{Kind: quant.BF16})
	if err != nil {
		t.Fatal(err)
	}
	if !(s.GBps > 0 && s.ReadGBps > 0 && s.GFLOPS > 0 && s.PeakGFLOPS > 0) {
		t.Errorf("%+v", s)
	}
	t.Log(s)
}

// BenchmarkFill reports how fast a matrix of the checkpoint becomes a resident weight.
func BenchmarkFill(b *testing.B) {
	for _, f := range benchmarked() {
		b.Run(f.String(), func(b *testing.B) {
			d, err := Open(Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			p, err := newTrial(d, 1, 2048, 2048, f)
			if err != nil {
				b.Fatal(err)
			}
			factors := make([]byte, 2048*f.ScaleBytes(2048, quant.BF16))
			m := quant.Matrix{Rows: 2048, Cols: 2048, Format: f, Data: make([]byte, 2048*f.RowBytes(2048)), Scales: factors, Biases: factors}
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				if err := d.Fill(p.w, backend.Slot{}, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
