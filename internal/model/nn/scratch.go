package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// scratch are the buffers of one forward; layers of a kind share them. What a model has no use for is nil.
type scratch struct {
	h, x, r       backend.Buffer // [rows, Hidden]: the residual stream, a layer's input, its result
	qkv           backend.Buffer // [rows, (Q+2·KV)·Dim]
	q, attended   backend.Buffer // [rows, Q·Dim]: turned queries, their attention
	bcx, conv     backend.Buffer // [rows, 3·Hidden], [rows, Hidden]
	gateUp, act   backend.Buffer // [rows, 2·FF], [rows, FF]
	taps          backend.Buffer // [rows, Hidden·taps]
	headX, logits backend.Buffer // [heads, Hidden], [heads, Vocab]
	moe           moeScratch
}

// moeScratch is that of a mixture of experts; a rank is one of a row's chosen experts.
type moeScratch struct {
	logits      backend.Buffer // [rows, experts]
	routes      backend.Routes // [rows, ranks]
	gateUp, act backend.Buffer // [rows·ranks, 2·Width], [rows·ranks, Width]
	out         backend.Buffer // [rows·ranks, Hidden]
}

func newScratch(a *arena, c *Config, s model.Shape) scratch {
	q, kv, convH := c.Q*c.Dim, 2*c.KV*c.Dim, c.Hidden
	if c.count(model.FullAttention) == 0 {
		q, kv = 0, 0
	}
	if c.Kernel == 0 {
		convH = 0
	}
	return scratch{
		h: a.buffer(s.Rows, c.Hidden), x: a.buffer(s.Rows, c.Hidden), r: a.buffer(s.Rows, c.Hidden),
		qkv: a.buffer(s.Rows, q+kv), q: a.buffer(s.Rows, q), attended: a.buffer(s.Rows, q),
		bcx: a.buffer(s.Rows, 3*convH), conv: a.buffer(s.Rows, convH),
		gateUp: a.buffer(s.Rows, 2*c.FF), act: a.buffer(s.Rows, c.FF),
		taps:  a.buffer(s.Rows, c.Hidden*len(s.Taps)),
		headX: a.buffer(s.Heads, c.Hidden), logits: a.buffer(s.Heads, c.Vocab),
		moe: newMoEScratch(a, c, s.Rows),
	}
}

func newMoEScratch(a *arena, c *Config, rows int) moeScratch {
	if c.MoE.Count == 0 {
		return moeScratch{}
	}
	ranks := rows * c.MoE.TopK
	return moeScratch{
		logits: a.buffer(rows, c.MoE.Count), routes: a.routes(rows, c.MoE.TopK),
		gateUp: a.buffer(ranks, 2*c.MoE.Width), act: a.buffer(ranks, c.MoE.Width),
		out: a.buffer(ranks, c.Hidden),
	}
}

// top is s cut to n rows, of which the logits of heads are wanted.
func (s scratch) top(n, heads int) scratch {
	return scratch{
		h: top(s.h, n), x: top(s.x, n), r: top(s.r, n),
		qkv: top(s.qkv, n), q: top(s.q, n), attended: top(s.attended, n),
		bcx: top(s.bcx, n), conv: top(s.conv, n),
		gateUp: top(s.gateUp, n), act: top(s.act, n),
		taps:  top(s.taps, n),
		headX: top(s.headX, heads), logits: top(s.logits, heads),
		moe: s.moe.top(n),
	}
}

func (s moeScratch) top(n int) moeScratch {
	if s.routes == nil {
		return moeScratch{}
	}
	_, ranks := s.routes.Shape()
	return moeScratch{
		logits: top(s.logits, n), routes: s.routes.Top(n),
		gateUp: top(s.gateUp, n*ranks), act: top(s.act, n*ranks), out: top(s.out, n*ranks),
	}
}

// top is nil where there is no buffer, or where no row of it is wanted.
func top(b backend.Buffer, n int) backend.Buffer {
	if b == nil || n == 0 {
		return nil
	}
	return b.Top(n)
}
