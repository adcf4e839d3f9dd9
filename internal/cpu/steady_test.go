package cpu

import (
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// TestSteadyStepAllocatesOnlyThePass runs every operator of a layer over and over.
func TestSteadyStepAllocatesOnlyThePass(t *testing.T) {
	for _, f := range []quant.Format{{Kind: quant.BF16}, {Kind: quant.Affine, Bits: 4, Group: 32}, {Kind: quant.Affine, Bits: 6, Group: 32}} {
		t.Run(f.String(), func(t *testing.T) { steadyStep(t, f) })
	}
}

func steadyStep(t *testing.T, f quant.Format) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const hidden, inner, experts, rows, topK = 64, 96, 4, 3, 2
	buffer := func(rows, cols int) backend.Buffer { return made(d.NewBuffer(rows, cols))(t) }
	weight := func(experts, rows, cols int) backend.Weight {
		return made(d.NewWeight(backend.WeightShape{Experts: experts, Rows: rows, Cols: cols, Format: f}))(t)
	}
	kv := made(d.NewKV(backend.KVShape{Layers: 1, Pages: 2, Heads: 2, Dim: 16}))(t)
	conv := made(d.NewConv(backend.ConvShape{Layers: 1, Lanes: 1, Channels: hidden, Kernel: 3, Ring: 8}))(t)
	routes := made(d.NewRoutes(rows, topK))(t)
	heads := backend.Heads{Q: 2, KV: 2, Dim: 16, QNorm: buffer(1, 16), KNorm: buffer(1, 16), Rope: buffer(600, 16)}
	h, x, gain := buffer(rows, hidden), buffer(rows, hidden), buffer(1, hidden)
	qkv, q, attended, bcx := buffer(rows, 96), buffer(rows, 32), buffer(rows, 32), buffer(rows, 3*hidden)
	gu, act, down := buffer(rows*topK, 2*inner), buffer(rows*topK, inner), buffer(rows*topK, hidden)
	taps, logits := buffer(hidden, 3), buffer(rows, experts)
	table, toQKV, toBCX := weight(1, 50, hidden), weight(1, 96, hidden), weight(1, 3*hidden, hidden)
	toGU, toDown, gate := weight(experts, 2*inner, hidden), weight(experts, hidden, inner), weight(1, experts, hidden)
	ids, out := []int32{1, 2, 3}, make([]float32, rows*hidden)
	r := backend.Rows{Lane: []int32{0, 0, 0}, Pos: []int32{300, 301, 302}, Pages: [][]int32{{0, 1}}}
	step := func() {
		p := d.Begin().(*Pass)
		p.Embed(h, table, ids)
		p.RMSNorm(x, h, gain, 1e-5)
		p.MatMul(qkv, x, toQKV)
		p.QKV(q, qkv, heads, kv, 0, r)
		p.Attend(attended, q, kv, 0, r)
		p.MatMul(bcx, x, toBCX)
		p.ShortConv(x, bcx, taps, nil, conv, 0, r)
		p.Add(h, h, x)
		p.MatMul(logits, h, gate)
		p.Route(routes, logits, nil, backend.Router{TopK: topK, Normalize: true, Scale: 1})
		p.ExpertMatMul(gu, h, toGU, routes)
		p.SwiGLU(act, gu)
		p.ExpertMatMul(down, act, toDown, routes)
		p.Combine(x, down, routes)
		p.Bias(x, gain)
		p.Read(out, x)
		if err := p.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(50, step); n > 1 {
		t.Errorf("%v allocations a step", n)
	}
}

// made takes the result of a constructor, and then the test that fails by its error.
func made[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
