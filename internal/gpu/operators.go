package gpu

import (
	"math"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
)

// Embed implements [backend.Pass].
func (p *Pass) Embed(dst backend.Buffer, table backend.Weight, ids []int32) {
	p.enter("embed")
	d, t := p.buffer("dst", dst), p.weight(table)
	p.want("ids", len(ids), d.rows)
	p.want("columns of the table", t.shape.Cols, d.cols)
	p.want("experts of the table", t.shape.Experts, 1)
	p.within("id", ids, t.shape.Rows)
	if p.err != nil {
		return
	}
	p.add(kernels.Embed(d.span(), t.w, p.ints(ids), d.rows))
}

// RMSNorm implements [backend.Pass].
func (p *Pass) RMSNorm(dst, x, gain backend.Buffer, eps float32) {
	p.enter("rms norm")
	d, in, g := p.buffer("dst", dst), p.buffer("x", x), p.vector("gain", gain)
	p.want("rows of x", in.rows, d.rows)
	p.want("columns of x", in.cols, d.cols)
	if p.err == nil && d.cols%g.cols != 0 {
		p.fail("rows of %d values and a gain of %d", d.cols, g.cols)
	}
	if p.err != nil {
		return
	}
	p.add(kernels.RMSNorm(d.span(), in.span(), g.span(), d.rows*(d.cols/g.cols), g.cols, eps))
}

// MatMul implements [backend.Pass].
func (p *Pass) MatMul(dst, x backend.Buffer, w backend.Weight) {
	p.enter("matmul")
	d, in, wt := p.buffer("dst", dst), p.buffer("x", x), p.weight(w)
	p.want("rows of x", in.rows, d.rows)
	p.want("columns of x", in.cols, wt.shape.Cols)
	p.want("columns of dst", d.cols, wt.shape.Rows)
	p.want("experts of w", wt.shape.Experts, 1)
	p.apart(d, in, "x")
	if p.err != nil {
		return
	}
	sums := p.scratch(&p.dev.sums, wt.w.SumBytes(d.rows))
	p.add(kernels.MatMul(d.span(), in.span(), sums, wt.w, d.rows, p.dev.limits.Work)...)
}

// Bias implements [backend.Pass].
func (p *Pass) Bias(x, b backend.Buffer) {
	p.enter("bias")
	in, bias := p.buffer("x", x), p.vector("b", b)
	p.want("columns of b", bias.cols, in.cols)
	if p.err != nil {
		return
	}
	p.noteRead(in.span())
	p.add(kernels.Bias(in.span(), bias.span(), in.rows, in.cols))
}

// QKV implements [backend.Pass].
func (p *Pass) QKV(q, qkv backend.Buffer, h backend.Heads, kv backend.KV, layer int, r backend.Rows) {
	p.enter("qkv")
	in, cache := p.buffer("qkv", qkv), p.kv(kv, layer)
	p.want("kv heads", h.KV, cache.shape.Heads)
	p.want("dim of heads", h.Dim, cache.shape.Dim)
	p.want("columns of qkv", in.cols, (h.Q+2*h.KV)*h.Dim)
	if h.Q < 0 || h.KV <= 0 || h.Dim%2 != 0 || h.Pairing > backend.Interleaved {
		p.fail("%d query and %d kv heads of %d, pairing %d", h.Q, h.KV, h.Dim, h.Pairing)
	}
	var out kernels.Span
	if h.Q != 0 {
		own := p.buffer("q", q)
		p.want("rows of q", own.rows, in.rows)
		p.want("columns of q", own.cols, h.Q*h.Dim)
		p.apart(own, in, "qkv")
		out = own.span()
	}
	rope := p.buffer("rope", h.Rope)
	p.want("columns of rope", rope.cols, h.Dim)
	norms := kernels.Norms{Q: p.optional("q norm", h.QNorm, h.Dim), K: p.optional("k norm", h.KNorm, h.Dim), Eps: h.Eps}
	p.checkRows(r, in.rows)
	p.checkPages(r, cache)
	if p.err == nil {
		p.within("position", r.Pos, rope.rows)
	}
	if p.err != nil {
		return
	}
	at := p.paged(r)
	l := kernels.QKV(out, in.span(), h.Q, norms, rope.span(), h.Pairing == backend.Interleaved, cache.cache(layer), at.pos, at.page, in.rows)
	p.addSparse([]kernels.Mem{cache.keys, cache.values}, l)
}

// kv checks that v is ours and has the layer.
func (p *Pass) kv(v backend.KV, layer int) *KV {
	own, ok := v.(*KV)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("kv is not a pool of this device")
		return &KV{}
	}
	if layer < 0 || layer >= own.shape.Layers {
		p.fail("layer %d of %d", layer, own.shape.Layers)
	}
	return own
}

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
	p.attend(d, in, cache.cache(layer), p.paged(r), r.Pos)
}

// attend splits the rows so that what their chunks leave fits the scratch, and no launch runs too long.
func (p *Pass) attend(d, in *Buffer, c kernels.Cache, at places, pos []int32) {
	heads := in.cols / c.Dim
	scale := float32(1 / math.Sqrt(float64(c.Dim)))
	for from := 0; from < len(pos); {
		to, chunks := from, 0
		for to < len(pos) {
			next := max(chunks, int(pos[to])/backend.PageKeys+1)
			parts := int64(to+1-from) * int64(next)
			if parts*kernels.PartBytes(heads, c.Dim) > partBytes || to > from && parts*kernels.PartWork(heads, c.Dim) > p.dev.limits.Work {
				break
			}
			to, chunks = to+1, next
		}
		if to == from {
			p.fail("row %d: position %d is beyond the scratch of %d bytes", from, pos[from], partBytes)
			return
		}
		n := to - from
		part := p.scratch(&p.dev.part, int64(n)*int64(chunks)*kernels.PartBytes(heads, c.Dim))
		row := 4 * int64(from)
		l := kernels.Attend(d.span().From(row*int64(d.cols)), in.span().From(row*int64(in.cols)), heads, c,
			at.pos.From(row), at.table.From(row), at.pages, part, n, chunks, scale)
		p.add(l[:]...)
		from = to
	}
}

// SwiGLU implements [backend.Pass].
func (p *Pass) SwiGLU(dst, gu backend.Buffer) {
	p.enter("swiglu")
	d, in := p.buffer("dst", dst), p.buffer("gu", gu)
	p.want("rows of gu", in.rows, d.rows)
	p.want("columns of gu", in.cols, 2*d.cols)
	p.apart(d, in, "gu")
	if p.err != nil {
		return
	}
	p.add(kernels.SwiGLU(d.span(), in.span(), d.rows, d.cols))
}

// Add implements [backend.Pass].
func (p *Pass) Add(dst, a, b backend.Buffer) {
	p.enter("add")
	d, x, y := p.buffer("dst", dst), p.buffer("a", a), p.buffer("b", b)
	p.want("rows of a", x.rows, d.rows)
	p.want("rows of b", y.rows, d.rows)
	p.want("columns of a", x.cols, d.cols)
	p.want("columns of b", y.cols, d.cols)
	if p.err != nil {
		return
	}
	p.add(kernels.Add(d.span(), x.span(), y.span(), d.rows*d.cols))
}

// Gather implements [backend.Pass].
func (p *Pass) Gather(dst, src backend.Buffer, rows []int32) {
	p.enter("gather")
	d, s := p.buffer("dst", dst), p.buffer("src", src)
	p.want("indexes", len(rows), d.rows)
	p.want("columns of src", s.cols, d.cols)
	p.within("index", rows, s.rows)
	p.apart(d, s, "src")
	if p.err != nil {
		return
	}
	p.add(kernels.Gather(d.span(), s.span(), p.ints(rows), d.rows, d.cols))
}

// Tap implements [backend.TapPass].
func (p *Pass) Tap(dst, src backend.Buffer, slot int) {
	p.enter("tap")
	d, s := p.buffer("dst", dst), p.buffer("src", src)
	p.want("rows of src", s.rows, d.rows)
	if p.err == nil && (slot < 0 || slot >= d.cols/s.cols) {
		p.fail("slot %d of %d columns in %d", slot, s.cols, d.cols)
	}
	p.apart(d, s, "src")
	if p.err != nil {
		return
	}
	p.addSparse([]kernels.Mem{d.mem}, kernels.Tap(d.span(), s.span(), s.rows, s.cols, d.cols, slot*s.cols))
}

// Read implements [backend.Pass].
func (p *Pass) Read(dst []float32, src backend.Buffer) {
	p.enter("read")
	s := p.buffer("src", src)
	p.want("values of dst", len(dst), s.rows*s.cols)
	if p.err != nil {
		return
	}
	p.reads = append(p.reads, read{at: len(p.launches), dst: dst, src: s.mem})
}

// ShortConv implements [backend.ConvPass].
func (p *Pass) ShortConv(dst, bcx, w, bias backend.Buffer, state backend.Conv, layer int, r backend.Rows) {
	p.enter("short conv")
	d, in, taps := p.buffer("dst", dst), p.buffer("bcx", bcx), p.buffer("w", w)
	own, ok := state.(*Conv)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("state is not a ring of this device")
		return
	}
	if layer < 0 || layer >= own.shape.Layers {
		p.fail("layer %d of %d", layer, own.shape.Layers)
	}
	channels := own.shape.Channels
	p.want("columns of dst", d.cols, channels)
	p.want("columns of bcx", in.cols, 3*channels)
	p.want("rows of bcx", in.rows, d.rows)
	p.want("channels of w", taps.rows, channels)
	p.want("taps of w", taps.cols, own.shape.Kernel)
	p.apart(d, in, "bcx")
	offset := p.optional("bias", bias, channels)
	p.checkRows(r, d.rows)
	if p.err == nil {
		p.within("lane", r.Lane, own.shape.Lanes)
	}
	if p.err != nil {
		return
	}
	p.saveRing(own, layer, taps.cols, r)
	at := p.lanes(r)
	l := kernels.ShortConv(d.span(), in.span(), taps.span(), offset, own.ring(layer), at.lane, at.pos, d.rows, taps.cols)
	p.add(l[:]...)
}

func (p *Pass) routes(v backend.Routes) *Routes {
	own, ok := v.(*Routes)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("routes are not of this device")
		return &Routes{topK: 1, known: new(int)}
	}
	if own.rows < 0 || own.rows > own.all {
		p.fail("routes are a view of %d rows, which they do not have", own.rows)
	}
	return own
}

// Route implements [backend.MoEPass].
func (p *Pass) Route(r backend.Routes, logits, bias backend.Buffer, cfg backend.Router) {
	p.enter("route")
	routes, in := p.routes(r), p.buffer("logits", logits)
	p.want("rows of logits", in.rows, routes.rows)
	p.want("experts per row", cfg.TopK, routes.topK)
	p.below("experts", in.cols, kernels.MaxExperts)
	if p.err == nil && cfg.TopK > in.cols {
		p.fail("%d of %d experts per row", cfg.TopK, in.cols)
	}
	if bias != nil && cfg.Softmax {
		p.fail("a softmax has no bias")
	}
	offset := p.optional("bias", bias, in.cols)
	if p.err != nil {
		return
	}
	*routes.known = in.cols
	choice := kernels.Choice{Experts: in.cols, Top: cfg.TopK, Softmax: cfg.Softmax, Normalize: cfg.Normalize, Scale: cfg.Scale}
	p.add(kernels.Route(routes.span(routes.ids), routes.span(routes.weights), in.span(), offset, in.rows, choice))
	p.add(kernels.Group(routes.groups(in.cols), in.cols)...)
}

// ExpertMatMul implements [backend.MoEPass].
func (p *Pass) ExpertMatMul(dst, x backend.Buffer, w backend.Weight, r backend.Routes) {
	p.enter("expert matmul")
	d, in, wt, routes := p.buffer("dst", dst), p.buffer("x", x), p.weight(w), p.routes(r)
	p.want("rows of dst", d.rows, routes.pairs())
	p.want("columns of x", in.cols, wt.shape.Cols)
	p.want("columns of dst", d.cols, wt.shape.Rows)
	p.want("experts of w", wt.shape.Experts, *routes.known)
	p.apart(d, in, "x")
	share := routes.topK
	if in.rows != routes.rows {
		share = 1
		p.want("rows of x", in.rows, d.rows)
	}
	if p.err != nil {
		return
	}
	groups := routes.groups(wt.shape.Experts)
	sums := p.scratch(&p.dev.sums, wt.w.SumBytes(in.rows))
	p.add(kernels.ExpertMatMul(d.span(), in.span(), sums, wt.w, groups, share, p.dev.limits.Work)...)
}

// Combine implements [backend.MoEPass].
func (p *Pass) Combine(dst, y backend.Buffer, r backend.Routes) {
	p.enter("combine")
	d, in, routes := p.buffer("dst", dst), p.buffer("y", y), p.routes(r)
	p.want("rows of routes", routes.rows, d.rows)
	p.want("rows of y", in.rows, d.rows*routes.topK)
	p.want("columns of y", in.cols, d.cols)
	p.apart(d, in, "y")
	if p.err != nil {
		return
	}
	p.add(kernels.Combine(d.span(), in.span(), routes.span(routes.weights), d.rows, d.cols, routes.topK))
}
