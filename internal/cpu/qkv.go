package cpu

import "tfbatch/internal/backend"

// QKV implements [backend.Pass].
func (p *Pass) QKV(q, qkv backend.Buffer, h backend.Heads, kv backend.KV, layer int, r backend.Rows) {
	p.enter("qkv")
	in, cache := p.buffer("qkv", qkv), p.kv(kv, layer)
	p.want("kv heads", h.KV, cache.shape.Heads)
	p.want("dim of heads", h.Dim, cache.shape.Dim)
	p.want("columns of qkv", in.cols, (h.Q+2*h.KV)*h.Dim)
	var out *Buffer
	if h.Q != 0 {
		out = p.buffer("q", q)
		p.want("rows of q", out.rows, in.rows)
		p.want("columns of q", out.cols, h.Q*h.Dim)
		p.apart(out, in, "qkv")
	}
	heads := p.heads(h)
	p.checkRows(r, in.rows)
	p.checkPages(r, cache)
	p.checkRope(heads.rope, r)
	if p.err != nil {
		return
	}
	p.dev.ops.qkv = turn{p.dev.kernels, out, in, heads, cache, layer, r}
	p.run(&p.dev.ops.qkv, in.rows)
}

// heads are the checked buffers of backend.Heads; gains are nil where there are none.
type heads struct {
	backend.Heads
	qGain, kGain []float32
	rope         *Buffer
}

func (p *Pass) heads(h backend.Heads) heads {
	own := heads{Heads: h, rope: p.buffer("rope", h.Rope)}
	p.want("columns of rope", own.rope.cols, h.Dim)
	p.want("dim of heads modulo 2", h.Dim%2, 0)
	own.qGain = p.gain("q norm", h.QNorm, h.Dim)
	own.kGain = p.gain("k norm", h.KNorm, h.Dim)
	if h.Q < 0 || h.KV <= 0 || h.Pairing > backend.Interleaved {
		p.fail("%d query and %d kv heads, pairing %d", h.Q, h.KV, h.Pairing)
	}
	return own
}

func (p *Pass) gain(name string, b backend.Buffer, dim int) []float32 {
	if b == nil {
		return nil
	}
	g := p.vector(name, b)
	if p.err == nil && g.cols != dim {
		p.fail("%s has %d values, want %d", name, g.cols, dim)
	}
	return g.first()
}

// checkRope checks that the table reaches the position of every row.
func (p *Pass) checkRope(rope *Buffer, r backend.Rows) {
	if p.err == nil {
		p.within("position", r.Pos, rope.rows)
	}
}

type turn struct {
	kernels *kernels
	q, in   *Buffer
	heads   heads
	kv      *KV
	layer   int
	r       backend.Rows
}

func (o *turn) do(w *worker, row int) {
	h, in, pos := &o.heads, o.in.row(row), int(o.r.Pos[row])
	dim := h.Dim
	rope := h.rope.row(pos)
	for i := range h.Q {
		q := o.q.row(row)[i*dim : (i+1)*dim]
		copy(q, in[i*dim:])
		o.head(w, q, h.qGain, rope)
	}
	page := int(o.r.Pages[o.r.Lane[row]][pos/backend.PageKeys])
	w.row = grown(w.row, dim)
	for i := range h.KV {
		k := w.row[:dim]
		copy(k, in[(h.Q+i)*dim:])
		o.head(w, k, h.kGain, rope)
		v := in[(h.Q+h.KV+i)*dim:][:dim]
		o.kv.store(page, o.layer, i, pos%backend.PageKeys, k, v)
	}
}

// head norms a head and turns its pairs.
func (o *turn) head(w *worker, x, gain, rope []float32) {
	if gain != nil {
		o.kernels.norm(w, x, x, gain, o.heads.Eps)
	}
	half := len(x) / 2
	cos, sin := rope[:half], rope[half:]
	if o.heads.Pairing == backend.HalfSplit {
		o.kernels.rotate(x[:half], x[half:], cos, sin)
		return
	}
	for i := range half {
		rotate(x[2*i:2*i+1], x[2*i+1:2*i+2], cos[i:i+1], sin[i:i+1])
	}
}
