package cpu

import (
	"tfbatch/internal/backend"
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
	p.dev.ops.embed = embed{d, t, ids}
	p.run(&p.dev.ops.embed, d.rows)
}

type embed struct {
	dst   *Buffer
	table *Weight
	ids   []int32
}

func (e *embed) do(_ *worker, row int) { e.table.row(e.dst.row(row), int(e.ids[row])) }

// within checks that indexes from outside are below n.
func (p *Pass) within(what string, indexes []int32, n int) {
	for i, x := range indexes {
		if x < 0 || int(x) >= n {
			p.fail("row %d: %s %d of %d", i, what, x, n)
			return
		}
	}
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
	p.dev.ops.norm = norm{p.dev.kernels, d, in, g, eps}
	p.run(&p.dev.ops.norm, d.rows)
}

type norm struct {
	kernels      *kernels
	dst, x, gain *Buffer
	eps          float32
}

func (n *norm) do(w *worker, row int) {
	dst, x, size := n.dst.row(row), n.x.row(row), n.gain.cols
	for at := 0; at < len(x); at += size {
		n.kernels.norm(w, dst[at:at+size], x[at:at+size], n.gain.first(), n.eps)
	}
}

// norm sets dst to x, normalised. dst may be x.
func (k *kernels) norm(w *worker, dst, x, gain []float32, eps float32) {
	k.scale(dst, x, gain, k.inverseNorm(&w.squares, x, eps))
}

// Bias implements [backend.Pass].
func (p *Pass) Bias(x, b backend.Buffer) {
	p.enter("bias")
	in, bias := p.buffer("x", x), p.vector("b", b)
	p.want("columns of b", bias.cols, in.cols)
	if p.err != nil {
		return
	}
	for i := range in.rows {
		p.dev.kernels.add(in.row(i), in.row(i), bias.first())
	}
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
	p.dev.ops.sum = sum{p.dev.kernels, d, x, y}
	p.run(&p.dev.ops.sum, d.rows)
}

type sum struct {
	kernels   *kernels
	dst, a, b *Buffer
}

func (s *sum) do(_ *worker, row int) { s.kernels.add(s.dst.row(row), s.a.row(row), s.b.row(row)) }

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
	p.dev.ops.swiglu = gated{p.dev.kernels, d, in, ceilDiv(d.cols, gatedPiece)}
	p.run(&p.dev.ops.swiglu, d.rows*p.dev.ops.swiglu.pieces)
}

// gatedPiece is the number of columns of a piece of SwiGLU: about 1 µs of work.
const gatedPiece = 2048

type gated struct {
	kernels *kernels
	dst, gu *Buffer
	pieces  int // of a row
}

func (g *gated) do(_ *worker, piece int) {
	row, from := piece/g.pieces, piece%g.pieces*gatedPiece
	to := min(from+gatedPiece, g.dst.cols)
	gate, up := g.gu.row(row)[:g.dst.cols], g.gu.row(row)[g.dst.cols:]
	g.kernels.swiglu(g.dst.row(row)[from:to], gate[from:to], up[from:to])
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
	for i, from := range rows {
		copy(d.row(i), s.row(int(from)))
	}
}

// Tap implements [backend.TapPass].
func (p *Pass) Tap(dst, src backend.Buffer, slot int) {
	p.enter("tap")
	d, s := p.buffer("dst", dst), p.buffer("src", src)
	p.want("rows of src", s.rows, d.rows)
	if p.err == nil && (slot < 0 || slot >= d.cols/max(s.cols, 1)) {
		p.fail("slot %d of %d columns in %d", slot, s.cols, d.cols)
	}
	p.apart(d, s, "src")
	if p.err != nil {
		return
	}
	for i := range d.rows {
		copy(d.row(i)[slot*s.cols:], s.row(i))
	}
}

// Read implements [backend.Pass].
func (p *Pass) Read(dst []float32, src backend.Buffer) {
	p.enter("read")
	s := p.buffer("src", src)
	p.want("values of dst", len(dst), s.rows*s.cols)
	if p.err != nil {
		return
	}
	for i := range s.rows {
		copy(dst[i*s.cols:], s.row(i))
	}
}
