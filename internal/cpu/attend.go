package cpu

import (
	"math"

	"tfbatch/internal/backend"
)

// Attend implements [backend.Pass].
func (p *Pass) Attend(dst, q backend.Buffer, kv backend.KV, layer int, r backend.Rows) {
	p.enter("attend")
	d, in, cache := p.buffer("dst", dst), p.buffer("q", q), p.kv(kv, layer)
	p.want("rows of q", in.rows, d.rows)
	p.want("columns of q", in.cols, d.cols)
	if s := cache.shape; p.err == nil && in.cols%(s.Heads*s.Dim) != 0 {
		p.fail("rows of %d values on %d kv heads of %d", in.cols, s.Heads, s.Dim)
	}
	p.apart(d, in, "q")
	p.checkRows(r, d.rows)
	p.checkPages(r, cache)
	if p.err != nil {
		return
	}
	group := in.cols / (cache.shape.Heads * cache.shape.Dim)
	kernels := p.dev.kernels
	set := &kernels.attention[0]
	if cache.shape.F32 {
		set = &kernels.attention[1]
	}
	scale := float32(1 / math.Sqrt(float64(cache.shape.Dim)))
	p.dev.ops.attend = attend{kernels, set, d, in, cache, layer, r, group, scale}
	p.run(&p.dev.ops.attend, cache.shape.Heads*d.rows)
}

// attend is the attention of every row; a piece is one row on one KV head, and pieces that
// share a head's pages follow each other.
type attend struct {
	kernels *kernels
	set     *attentionSet
	dst, q  *Buffer
	kv      *KV
	layer   int
	r       backend.Rows
	group   int // query heads of a KV head
	scale   float32
}

func (o *attend) do(w *worker, piece int) {
	head, row := piece/o.q.rows, piece%o.q.rows
	for from := 0; from < o.group; from += maxGroup {
		o.queries(w, row, head, head*o.group+from, min(maxGroup, o.group-from))
	}
}

// queries runs n neighbouring query heads of a row over all pages.
func (o *attend) queries(w *worker, row, head, first, n int) {
	dim, width := o.kv.shape.Dim, o.kv.width
	w.part = grown(w.part, maxGroup*width)
	w.row = grown(w.row, maxGroup*width)
	a := &w.attention
	a.q, a.s, a.l = &o.q.row(row)[first*dim], &w.scores[0], &w.partSums[0]
	a.dim, a.width, a.scale, a.f32, a.queries = dim, width, o.scale, o.kv.shape.F32, n
	var top, sums [maxGroup]float32 // running maximum, sum of weights
	pos := int(o.r.Pos[row])
	for c, page := range o.r.Pages[o.r.Lane[row]][:pos/backend.PageKeys+1] {
		a.k, a.v = o.kv.at(int(page), o.layer, head)
		a.keys = min(backend.PageKeys, pos+1-c*backend.PageKeys)
		a.o = &w.part[0]
		if c == 0 {
			a.o = &w.row[0]
		}
		o.set.scores[n](a)
		var pageTop [maxGroup]float32
		for i := range n {
			pageTop[i] = o.kernels.weigh(w.scores[i*backend.PageKeys:][:backend.PageKeys], a.keys)
		}
		o.set.values[n](a)
		if c == 0 {
			top, sums = pageTop, w.partSums
			continue
		}
		for i := range n {
			o.merge(&top[i], &sums[i], w.row[i*width:][:width], pageTop[i], w.partSums[i], w.part[i*width:][:width])
		}
	}
	for i := range n {
		o.kernels.divide(o.dst.row(row)[(first+i)*dim:][:dim], w.row[i*width:], sums[i])
	}
}

// weigh turns the scores of keys keys into exp(score - maximum) and returns the maximum.
func (k *kernels) weigh(s []float32, keys int) float32 {
	s = s[:ceilDiv(keys, lanes)*lanes]
	for i := keys; i < len(s); i++ {
		s[i] = s[0] // changes no maximum, and no kernel reads its weight
	}
	top := k.vector.maximum(s)
	k.vector.expSub(s, top)
	return top
}

// merge adds a later page to the running softmax.
func (o *attend) merge(top, sum *float32, values []float32, pageTop, pageSum float32, page []float32) {
	m := max(*top, pageTop)
	a, b := backend.Exp(*top-m), backend.Exp(pageTop-m)
	*top = m
	*sum = backend.FMA(*sum, a, float32(pageSum*b))
	o.kernels.vector.merge(values, page, a, b)
}
