package contract

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tfbatch/internal/backend"
)

func attentionChecks() []Check {
	var all []Check
	for _, f32 := range []bool{false, true} {
		store := map[bool]string{false: "bf16", true: "f32"}[f32]
		for _, h := range []backend.Heads{
			{Q: 4, KV: 1, Dim: 64}, {Q: 4, KV: 4, Dim: 64}, {Q: 8, KV: 2, Dim: 32}, {Q: 6, KV: 2, Dim: 16}, {Q: 3, KV: 3, Dim: 6},
			{Q: 5, KV: 1, Dim: 64}, {Q: 2, KV: 1, Dim: 128}, {Q: 4, KV: 2, Dim: 80}, {Q: 11, KV: 1, Dim: 24},
		} {
			name := fmt.Sprintf("attention/%s/%d on %d heads of %d", store, h.Q, h.KV, h.Dim)
			all = append(all, Check{name, func(l *lab) { raggedLanes(l, h, f32, gauss) }})
		}
		small := backend.Heads{Q: 4, KV: 2, Dim: 32}
		all = append(all,
			Check{"attention/" + store + "/interleaved", func(l *lab) {
				raggedLanes(l, backend.Heads{Q: 4, KV: 2, Dim: 32, Pairing: backend.Interleaved}, f32, gauss)
			}},
			Check{"attention/" + store + "/steep", func(l *lab) { raggedLanes(l, small, f32, steep) }},
			Check{"attention/" + store + "/odd values", func(l *lab) { raggedLanes(l, small, f32, odd) }},
			Check{"attention/" + store + "/pages", func(l *lab) { manyPages(l, f32) }},
			Check{"attention/" + store + "/cut back", func(l *lab) { cutBack(l, small, f32) }},
		)
	}
	return append(all, Check{"attention/keys only", keysOnly})
}

// lanes are sequences with their history, which is what the reference attends to.
type lanes struct {
	*lab
	heads        backend.Heads
	qGain, kGain []float32 // nil: no norm
	table        matrix    // rope
	kv           backend.KV
	layer        int
	pages        [][]int32
	draws        values
	keys, values [][][][]float32 // [lane][kv head][position][dim], as stored
}

// newLanes makes n lanes of up to positions each, on pages in no order, with norms when asked.
func newLanes(l *lab, h backend.Heads, n, positions int, f32, norms bool, v values) *lanes {
	perLane := (positions + backend.PageKeys - 1) / backend.PageKeys
	s := &lanes{lab: l, heads: h, layer: 1, draws: v, table: newMatrix(positions, h.Dim)}
	kv, err := l.d.NewKV(backend.KVShape{Layers: 3, Pages: n*perLane + 1, Heads: h.KV, Dim: h.Dim, F32: f32})
	l.ok("new kv", err)
	s.kv = kv
	order := l.rng.Perm(n*perLane + 1)
	for lane := range n {
		var pages []int32
		for _, page := range order[lane*perLane : (lane+1)*perLane] {
			pages = append(pages, int32(page))
		}
		s.pages = append(s.pages, pages)
		s.keys = append(s.keys, make([][][]float32, h.KV))
		s.values = append(s.values, make([][][]float32, h.KV))
	}
	for pos, row := range s.table {
		for i := range h.Dim / 2 {
			angle := float64(pos) * math.Pow(10000, -2*float64(i)/float64(h.Dim))
			row[i], row[h.Dim/2+i] = float32(math.Cos(angle)), float32(math.Sin(angle))
		}
	}
	s.heads.Rope, s.heads.Eps = l.buffer(s.table), 1e-5
	if norms {
		q, k := l.draw(1, h.Dim, gauss), l.draw(1, h.Dim, gauss)
		s.qGain, s.kGain, s.heads.QNorm, s.heads.KNorm = q[0], k[0], l.buffer(q), l.buffer(k)
	}
	return s
}

// span is a run of rows of one lane.
type span struct{ lane, from, to int }

// batch is the rows of some spans.
func (s *lanes) batch(spans ...span) backend.Rows {
	r := backend.Rows{Pages: s.pages}
	for _, sp := range spans {
		for pos := sp.from; pos < sp.to; pos++ {
			r.Lane = append(r.Lane, int32(sp.lane))
			r.Pos = append(r.Pos, int32(pos))
		}
	}
	return r
}

// step stores the rows of the spans and, when asked, compares their queries and attention.
func (s *lanes) step(attended bool, spans ...span) {
	h, r := s.heads, s.batch(spans...)
	n := len(r.Lane)
	qkv := s.draw(n, (h.Q+2*h.KV)*h.Dim, s.draws)
	in, q, out := s.buffer(qkv), s.empty(n, h.Q*h.Dim), s.empty(n, h.Q*h.Dim)
	wantQ := newMatrix(n, 0)
	for i, row := range flushed(qkv) {
		wantQ[i] = s.remember(row, int(r.Lane[i]), int(r.Pos[i]))
	}
	s.equal("queries", s.run(q, func(p backend.Pass) { p.QKV(q, in, h, s.kv, s.layer, r) }), wantQ)
	if !attended {
		return
	}
	want := newMatrix(n, 0)
	for i := range want {
		for head := range h.Q {
			shared, seen := head/(h.Q/h.KV), int(r.Pos[i])+1
			keys, values := s.keys[r.Lane[i]][shared][:seen], s.values[r.Lane[i]][shared][:seen]
			want[i] = append(want[i], attend(wantQ[i][head*h.Dim:][:h.Dim], keys, values)...)
		}
	}
	s.equal("attention", s.run(out, func(p backend.Pass) { p.Attend(out, q, s.kv, s.layer, r) }), want)
}

// remember puts a row into the history of its lane, which it cuts there, and returns its queries.
func (s *lanes) remember(qkv []float32, lane, pos int) (q []float32) {
	h := s.heads
	head := func(i int, gain []float32) []float32 {
		x := qkv[i*h.Dim : (i+1)*h.Dim]
		if gain != nil {
			x = norm(x, gain, h.Eps)
		}
		return rope(x, s.table[pos], h.Pairing)
	}
	for i := range h.Q {
		q = append(q, head(i, s.qGain)...)
	}
	for i := range h.KV {
		k, v := head(h.Q+i, s.kGain), qkv[(h.Q+h.KV+i)*h.Dim:][:h.Dim]
		if !s.kv.Shape().F32 {
			k, v = bf16(k), bf16(v)
		}
		s.keys[lane][i] = append(s.keys[lane][i][:pos], k)
		s.values[lane][i] = append(s.values[lane][i][:pos], v)
	}
	return q
}

// raggedLanes mixes prefill chunks, decode rows and verify rows of three lanes.
func raggedLanes(l *lab, h backend.Heads, f32 bool, v values) {
	s := newLanes(l, h, 3, 60, f32, true, v)
	s.step(true, span{1, 0, 1})
	s.step(true, span{0, 0, 17}, span{1, 1, 2}, span{2, 0, 5})
	s.step(true, span{2, 5, 6}, span{0, 17, 33})
	s.step(true, span{1, 2, 10}, span{2, 6, 7}, span{0, 33, 34})
}

// steep makes scores so far apart that weights reach the clamp of exp.
func steep(rng *rand.Rand) float32 { return gauss(rng) * 12 }

// manyPages crosses page borders, within a batch and between two.
func manyPages(l *lab, f32 bool) {
	s := newLanes(l, backend.Heads{Q: 4, KV: 2, Dim: 16}, 2, 3*backend.PageKeys, f32, false, gauss)
	s.step(false, span{0, 0, 254}, span{1, 0, 511})
	s.step(true, span{0, 254, 259}, span{1, 511, 514})
	s.step(false, span{1, 514, 766})
	s.step(true, span{1, 766, 768}, span{0, 259, 260})
}

// cutBack overwrites positions, as after a rejected guess: what lay beyond is not seen.
func cutBack(l *lab, h backend.Heads, f32 bool) {
	s := newLanes(l, h, 2, 300, f32, true, gauss)
	s.step(false, span{0, 0, 250})
	s.step(true, span{0, 250, 262}, span{1, 0, 4})
	s.step(true, span{1, 1, 3}, span{0, 253, 254})
	s.step(true, span{0, 254, 258})
}

// keysOnly stores keys and values without queries, as a drafter does.
func keysOnly(l *lab) {
	h := backend.Heads{Q: 2, KV: 1, Dim: 32}
	s := newLanes(l, h, 1, 40, false, true, gauss)
	r := s.batch(span{0, 0, 20})
	kv := l.draw(20, 2*h.Dim, gauss)
	in := l.buffer(kv)
	for pos, row := range kv {
		s.remember(append(make([]float32, h.Q*h.Dim), row...), 0, pos)
	}
	alone := s.heads
	alone.Q = 0
	l.run(in, func(p backend.Pass) { p.QKV(nil, in, alone, s.kv, s.layer, r) })
	s.step(true, span{0, 20, 22})
}
