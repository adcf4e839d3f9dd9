package contract

import (
	"context"
	"strings"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

func failureChecks() []Check {
	return []Check{{"failures/operators", operatorFailures}, {"failures/sticky", stickyFailure}, {"failures/makers", makerFailures}}
}

// operatorFailures calls operators with numbers that an input file or a bug could bring: each
// must end in an error that names the operator.
func operatorFailures(l *lab) {
	b := func(rows, cols int) backend.Buffer { return l.buffer(newMatrix(rows, cols)) }
	w, _ := l.weight(bf16Storage(), 64, gauss, 32)
	h := backend.Heads{Q: 2, KV: 1, Dim: 16, Rope: b(600, 16)}
	kv, err := l.d.NewKV(backend.KVShape{Layers: 1, Pages: 2, Heads: 1, Dim: 16})
	l.ok("new kv", err)
	rows := func(lane, pos int32, pages ...int32) backend.Rows {
		return backend.Rows{Lane: []int32{lane}, Pos: []int32{pos}, Pages: [][]int32{pages}}
	}
	for _, c := range []struct {
		name, op string
		do       func(p backend.Pass)
	}{
		{"id too high", "embed", func(p backend.Pass) { p.Embed(b(1, 64), w, []int32{32}) }},
		{"id below zero", "embed", func(p backend.Pass) { p.Embed(b(1, 64), w, []int32{-1}) }},
		{"too few ids", "embed", func(p backend.Pass) { p.Embed(b(2, 64), w, []int32{1}) }},
		{"narrow x", "matmul", func(p backend.Pass) { p.MatMul(b(1, 32), b(1, 63), w) }},
		{"rows of x", "matmul", func(p backend.Pass) { p.MatMul(b(2, 32), b(1, 64), w) }},
		{"view too long", "matmul", func(p backend.Pass) { p.MatMul(b(2, 32).Top(3), b(3, 64), w) }},
		{"no weight", "matmul", func(p backend.Pass) { p.MatMul(b(1, 32), b(1, 64), nil) }},
		{"no buffer", "add", func(p backend.Pass) { p.Add(b(1, 32), nil, b(1, 32)) }},
		{"gain does not divide", "rms norm", func(p backend.Pass) { p.RMSNorm(b(1, 32), b(1, 32), b(1, 5), 0) }},
		{"narrow gu", "swiglu", func(p backend.Pass) { p.SwiGLU(b(1, 32), b(1, 63)) }},
		{"long bias", "bias", func(p backend.Pass) { p.Bias(b(1, 32), b(1, 33)) }},
		{"row too high", "gather", func(p backend.Pass) { p.Gather(b(1, 8), b(3, 8), []int32{3}) }},
		{"short dst", "read", func(p backend.Pass) { p.Read(make([]float32, 7), b(1, 8)) }},
		{"position past rope", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 0, rows(0, 600, 0, 1, 0)) }},
		{"position below zero", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 0, rows(0, -1, 0)) }},
		{"no page", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 0, rows(0, 256, 0)) }},
		{"page too high", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 0, rows(0, 0, 2)) }},
		{"lane too high", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 0, rows(1, 0, 0)) }},
		{"layer too high", "qkv", func(p backend.Pass) { p.QKV(b(1, 32), b(1, 64), h, kv, 1, rows(0, 0, 0)) }},
		{"no page", "attend", func(p backend.Pass) { p.Attend(b(1, 32), b(1, 32), kv, 0, rows(0, 511, 1)) }},
		{"rows apart", "attend", func(p backend.Pass) {
			p.Attend(b(2, 32), b(2, 32), kv, 0, backend.Rows{Lane: []int32{0, 0}, Pos: []int32{3, 5}, Pages: [][]int32{{0}}})
		}},
		{"too few rows", "attend", func(p backend.Pass) { p.Attend(b(2, 32), b(2, 32), kv, 0, rows(0, 3, 1)) }},
	} {
		p := l.d.Begin()
		c.do(p)
		err := p.Commit(context.Background())
		if err == nil || !strings.Contains(err.Error(), c.op) {
			l.fail("%s: error %v, want one that names %s", c.name, err, c.op)
		}
	}
}

// stickyFailure: the first failure is the one reported, and the device works on.
func stickyFailure(l *lab) {
	a := l.buffer(newMatrix(2, 8))
	p := l.d.Begin()
	p.Gather(a, l.buffer(newMatrix(2, 8)), []int32{0, 9})
	p.Bias(a, l.buffer(newMatrix(1, 7)))
	if err := p.Commit(context.Background()); err == nil || !strings.Contains(err.Error(), "gather") {
		l.fail("error %v, want the one of gather", err)
	}
	if err := p.Commit(context.Background()); err == nil {
		l.fail("a spent pass was committed")
	}
	l.run(a, func(p backend.Pass) { p.Add(a, a, a) })
}

// makerFailures asks for things that cannot be.
func makerFailures(l *lab) {
	bf16 := quant.Format{Kind: quant.BF16}
	weight := func(s backend.WeightShape) error { _, err := l.d.NewWeight(s); return err }
	kv := func(s backend.KVShape) error { _, err := l.d.NewKV(s); return err }
	w, _ := l.weight(bf16Storage(), 8, gauss, 4)
	four, _ := l.store(bf16Storage(), 4, 8, gauss)
	wide, _ := l.store(bf16Storage(), 4, 9, gauss)
	affine := storage{quant.Format{Kind: quant.Affine, Bits: 4, Group: 32}, quant.BF16}
	codes, _ := l.store(affine, 4, 64, gauss)
	noScales := codes
	noScales.Scales = nil
	coded, _ := l.weight(affine, 64, gauss, 4)
	short := four
	short.Data = short.Data[:5]
	_, noRows := l.d.NewBuffer(0, 5)
	for name, err := range map[string]error{
		"no rows":              noRows,
		"no experts":           weight(backend.WeightShape{Rows: 1, Cols: 1, Format: bf16}),
		"size that overflows":  weight(backend.WeightShape{Experts: 1 << 40, Rows: 1 << 40, Cols: 1 << 40, Format: bf16}),
		"group that is cut":    weight(backend.WeightShape{Experts: 1, Rows: 1, Cols: 48, Format: affine.Format}),
		"seven bits":           weight(backend.WeightShape{Experts: 1, Rows: 1, Cols: 64, Format: quant.Format{Kind: quant.Affine, Bits: 7, Group: 32}}),
		"fill without scales":  l.d.Fill(coded, backend.Slot{}, noScales),
		"fill of codes":        l.d.Fill(w, backend.Slot{}, codes),
		"unknown format":       weight(backend.WeightShape{Experts: 1, Rows: 1, Cols: 1, Format: quant.Format{Kind: 99}}),
		"pages that overflow":  kv(backend.KVShape{Layers: 1 << 30, Pages: 1 << 30, Heads: 1 << 30, Dim: 64}),
		"heads of nothing":     kv(backend.KVShape{Layers: 1, Pages: 1, Heads: 1}),
		"fill past the end":    l.d.Fill(w, backend.Slot{Row: 1}, four),
		"fill no such expert":  l.d.Fill(w, backend.Slot{Expert: 1}, four),
		"fill wrong width":     l.d.Fill(w, backend.Slot{}, wide),
		"fill too few bytes":   l.d.Fill(w, backend.Slot{}, short),
		"write past the end":   l.d.Write(l.buffer(newMatrix(1, 3)), make([]float32, 4)),
		"write to no buffer":   l.d.Write(nil, nil),
		"fill of no weight":    l.d.Fill(nil, backend.Slot{}, four),
		"fill of other format": l.d.Fill(w, backend.Slot{}, quant.Matrix{Rows: 1, Cols: 8, Format: quant.Format{Kind: quant.F32}, Data: make([]byte, 32)}),
	} {
		if err == nil {
			l.fail("%s: no error", name)
		}
	}
}
