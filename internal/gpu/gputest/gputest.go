// Package gputest holds the GPU kernels to the contract in the shapes that choose between
// them: every height and width of a threadgroup, every packing of codes, ends of tiles and
// of blocks. What a device has to do at all is backendtest's business.
package gputest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// check is one promise.
type check struct {
	name string
	do   func(b *bench)
}

func checks() []check {
	all := []check{{"rms norm", (*bench).longNorm}}
	for _, f := range formats() {
		for _, scales := range scaleKinds(f) {
			name := fmt.Sprintf("matmul %v %v", f, quant.Format{Kind: scales})
			all = append(all, check{name, func(b *bench) { b.products(f, scales) }})
		}
		all = append(all, check{fmt.Sprintf("experts %v", f), func(b *bench) { b.mixtures(f) }})
	}
	return all
}

// Run runs every check on devices that open makes; the suite closes them.
func Run(t *testing.T, open func(testing.TB) backend.Device) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}

func (c check) run(t testing.TB, open func(testing.TB) backend.Device) {
	d := open(t)
	defer d.Close()
	c.do(&bench{t, d, rand.New(rand.NewPCG(5, 8))})
}

// Failure is what the first check to fail says, of those whose names start with prefix. A
// test plants a fault in a kernel and demands that it is seen.
func Failure(t testing.TB, open func(testing.TB) backend.Device, prefix string) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // the recorder ends it where a test would end
		defer close(done)
		for _, c := range checks() {
			if strings.HasPrefix(c.name, prefix) {
				c.run(r, open)
			}
		}
	}()
	<-done
	return r.message
}

// recorder is a test that keeps its failure to itself.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func formats() []quant.Format {
	all := []quant.Format{{Kind: quant.BF16}, {Kind: quant.F16}, {Kind: quant.F32}}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			all = append(all, quant.Format{Kind: quant.Affine, Bits: bits, Group: group})
		}
	}
	return all
}

// scaleKinds gives every kind of scale to one group size, and the usual one to the others.
func scaleKinds(f quant.Format) []quant.Kind {
	if f.Kind == quant.Affine && f.Group == 64 {
		return []quant.Kind{quant.BF16, quant.F16, quant.F32}
	}
	return []quant.Kind{quant.BF16}
}

// bench is a device, a source of values and the test they serve.
type bench struct {
	t   testing.TB
	d   backend.Device
	rng *rand.Rand
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// values mixes magnitudes, so that almost any other order shows.
func (b *bench) values(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(b.rng.NormFloat64() * math.Ldexp(1, b.rng.IntN(20)-10))
	}
	return v
}

func (b *bench) buffer(rows, cols int, v []float32) backend.Buffer {
	b.t.Helper()
	buf, err := b.d.NewBuffer(rows, cols)
	b.ok(err)
	b.ok(b.d.Write(buf, v))
	return buf
}

// run records, commits and reads out.
func (b *bench) run(out backend.Buffer, record func(backend.Pass)) []float32 {
	b.t.Helper()
	rows, cols := out.Shape()
	got := make([]float32, rows*cols)
	p := b.d.Begin()
	record(p)
	p.Read(got, out)
	b.ok(p.Commit(context.Background()))
	return got
}

func (b *bench) equal(what string, got, want []float32) {
	b.t.Helper()
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) {
			b.t.Fatalf("%s: value %d of %d: %x, want %x", what, i, len(want), got[i], w)
		}
	}
}

// products walks rows and outputs over the shapes of threadgroups.
func (b *bench) products(f quant.Format, scales quant.Kind) {
	for _, s := range []struct{ rows, outs, units int }{
		{1, 70, 9}, {3, 83, 17}, {9, 130, 2}, {1, 4100, 3}, {2, 8200, 1}, {4, 8200, 1}, {8, 8200, 1}, {70, 1030, 3},
	} {
		w := b.weight(f, scales, s.outs, s.units*unit(f))
		x := b.values(s.rows * w.cols)
		in, out := b.buffer(s.rows, w.cols, x), b.buffer(s.rows, s.outs, nil)
		resident := b.fill(w)
		what := fmt.Sprintf("%d rows, %d outputs, %d units", s.rows, s.outs, s.units)
		b.equal(what, b.run(out, func(p backend.Pass) { p.MatMul(out, in, resident) }), w.product(x))
		if s.units == 9 {
			ids := []int32{0, int32(s.outs - 1), 33}
			rows := b.buffer(len(ids), w.cols, nil)
			b.equal("embed", b.run(rows, func(p backend.Pass) { p.Embed(rows, resident, ids) }), w.embed(ids))
		}
	}
}

// mixtures makes few and many pairs an expert, with inputs shared by ranks and not.
func (b *bench) mixtures(f quant.Format) {
	for _, s := range []struct{ rows, top, experts int }{{1, 2, 3}, {8, 2, 5}, {11, 2, 16}, {21, 2, 5}} {
		const outs = 260 // enough for pairs to be multiplied by two tiles at once
		ws := make([]*weight, s.experts)
		shape := backend.WeightShape{Experts: s.experts, Rows: outs, Cols: unit(f), Format: f}
		resident, err := b.d.NewWeight(shape)
		b.ok(err)
		for e := range ws {
			ws[e] = b.weight(f, quant.BF16, outs, shape.Cols)
			b.ok(b.d.Fill(resident, backend.Slot{Expert: e}, ws[e].matrix))
		}
		b.mixture(ws, resident, s.rows, s.top)
	}
}

func (b *bench) mixture(ws []*weight, resident backend.Weight, rows, top int) {
	b.t.Helper()
	experts, cols, outs := len(ws), ws[0].cols, len(ws[0].codes)
	routes, err := b.d.(backend.MoEDevice).NewRoutes(rows, top)
	b.ok(err)
	scores := make([]float32, rows*experts) // row r chooses r, r+1, … in that order
	for r := range rows {
		for rank := range top {
			scores[r*experts+(r+rank)%experts] = float32(top - rank)
		}
	}
	logits := b.buffer(rows, experts, scores)
	pairs := rows * top
	x, own := b.values(rows*cols), b.values(pairs*cols)
	shared, each := b.buffer(rows, cols, x), b.buffer(pairs, cols, own)
	out := b.buffer(pairs, outs, nil)
	var wantShared, wantEach []float32
	for p := range pairs {
		w := ws[(p/top+p%top)%experts]
		wantShared = append(wantShared, w.product(x[p/top*cols:][:cols])...)
		wantEach = append(wantEach, w.product(own[p*cols:][:cols])...)
	}
	for _, c := range []struct {
		name string
		in   backend.Buffer
		want []float32
	}{{"shared inputs", shared, wantShared}, {"an input a rank", each, wantEach}} {
		got := b.run(out, func(p backend.Pass) {
			m := p.(backend.MoEPass)
			m.Route(routes, logits, nil, backend.Router{TopK: top, Normalize: true, Scale: 1})
			m.ExpertMatMul(out, c.in, resident, routes)
		})
		b.equal(fmt.Sprintf("%d rows, %d of %d experts, %s", rows, top, experts, c.name), got, c.want)
	}
}

// longNorm is a run longer than a threadgroup holds at once.
func (b *bench) longNorm() {
	const n, eps = 9001, 1e-5
	x, gain := b.values(n), b.values(n)
	in, g := b.buffer(1, n, x), b.buffer(1, n, gain)
	var sums [32]float32
	for k, v := range x {
		sums[k%32] = backend.FMA(v, v, sums[k%32])
	}
	for s := 16; s > 0; s /= 2 {
		for j := range s {
			sums[j] += sums[j+s]
		}
	}
	r := 1 / float32(math.Sqrt(float64(float32(sums[0]/n)+eps)))
	want := make([]float32, n)
	for k := range want {
		want[k] = backend.Flush(float32(x[k]*r) * gain[k])
	}
	b.equal("run of 9001", b.run(in, func(p backend.Pass) { p.RMSNorm(in, in, g, eps) }), want)
}
