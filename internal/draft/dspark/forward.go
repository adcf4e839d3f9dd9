package dspark

import (
	"context"
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
)

// block is a lane's share of a round: its anchor and the masks behind it.
type block struct {
	ask   *draft.Ask
	most  int     // guesses to make
	head  int32   // its first head row
	reach float32 // the chance that all guesses so far land
}

// round is what one call of Propose works with, kept to spare allocations. The device may look at the slices
// until the pass is committed.
type round struct {
	blocks []block
	ids    []int32 // of the block rows
	stored rows    // block rows, then context rows: where keys and values go
	read   rows    // block rows: the keys that each attends to
	heads  []int32 // the block row of every head row
	behind []int32 // gathers context rows behind block rows
	hidden []float32
	chain  chain
}

// Propose guesses for every lane whose context is whole, all blocks in one pass and then a small pass for
// each further link of the chain.
func (d *Drafter) Propose(ctx context.Context, asks []draft.Ask) error {
	d.choose(asks)
	if len(d.round.blocks) == 0 {
		return nil
	}
	n, err := d.catchUp(ctx)
	if err != nil {
		return err
	}
	d.place(d.stage.out[:n])
	p := d.dev.Begin()
	d.forward(p, n)
	return d.link(ctx, p)
}

// catchUp brings the staged rows of the round's lanes to d.taps, and makes context of all that one pass cannot
// take along.
func (d *Drafter) catchUp(ctx context.Context) (n int, err error) {
	for {
		if n, err = d.unstage(d.asked); err != nil || n < contextRows {
			return n, err
		}
		p := d.dev.Begin()
		d.absorb(p, d.taps.Top(n), d.stage.out)
		if err := p.Commit(ctx); err != nil {
			return 0, fmt.Errorf("drafter: context of %d rows: %w", n, err)
		}
	}
}

// asked reports whether a staged row is of a lane with a block.
func (d *Drafter) asked(at place) bool { return d.lanes[at.lane].asked }

// choose makes a block of every ask that can be answered.
func (d *Drafter) choose(asks []draft.Ask) {
	r := &d.round
	r.blocks = r.blocks[:0]
	for i := range d.lanes {
		d.lanes[i].asked = false
	}
	for i := range asks {
		a := &asks[i]
		if most := min(a.Most, d.cfg.block); most > 0 && d.lanes[a.Lane].whole() {
			d.lanes[a.Lane].asked = true
			r.blocks = append(r.blocks, block{ask: a, most: most, reach: 1})
		}
	}
}

// place lays the round's rows out: blocks, then context rows at.
func (d *Drafter) place(at []place) {
	r := &d.round
	r.ids, r.heads, r.behind = r.ids[:0], r.heads[:0], r.behind[:0]
	r.stored.reset()
	r.read.reset()
	for i := range r.blocks {
		d.placeBlock(&r.blocks[i])
	}
	d.addContext(&r.stored, at)
	for range r.ids {
		r.behind = append(r.behind, 0) // to be overwritten
	}
	for i := range at {
		r.behind = append(r.behind, int32(i))
	}
}

func (d *Drafter) placeBlock(b *block) {
	r, l := &d.round, &d.lanes[b.ask.Lane]
	first, width := l.anchor(), d.cfg.block
	if d.trim {
		width = b.most
	}
	end := first + width
	d.reach(l, end)
	b.head = int32(len(r.heads))
	for j := range width {
		id := d.cfg.mask
		if j == 0 {
			id = l.last
		}
		if j < b.most {
			r.heads = append(r.heads, int32(len(r.ids)))
		}
		r.ids = append(r.ids, id)
		r.stored.add(place{int32(b.ask.Lane), int32(first + j)}, l.pages)
		// Every row sees the whole block: to the device it stands at the block's last position.
		r.read.alone(place{int32(b.ask.Lane), int32(end - 1)}, l.pages)
	}
}

// forward takes the blocks through the stack and leaves the scores before the chain in d.base. The n rows in
// d.taps become context on the way: they ride in the projections of every layer, whose weights are so read once.
func (d *Drafter) forward(p backend.Pass, n int) {
	r := &d.round
	blockRows := len(r.ids)
	h, x := d.h.Top(blockRows), d.x.Top(blockRows+n)
	p.Embed(h, d.embed, r.ids) // [block, Hidden]
	if n > 0 {
		p.Gather(x, d.context(p, d.taps.Top(n)), r.behind) // [block + context, Hidden]
	}
	for i := range d.layers {
		d.layer(p, i, h, x)
	}
	headX := d.headX.Top(len(r.heads))
	p.Gather(headX, h, r.heads)                       // [head, Hidden]
	p.RMSNorm(headX, headX, d.norm, d.cfg.eps)        // [head, Hidden]
	p.MatMul(d.base.Top(len(r.heads)), headX, d.head) // [head, Vocab]
	if d.cfg.confidence {
		r.hidden = grown(r.hidden, len(r.heads)*d.cfg.hidden)
		p.Read(r.hidden, headX)
	}
}

// layer adds what a layer makes of h. The first rows of x are scratch for the blocks, those behind are context.
func (d *Drafter) layer(p backend.Pass, i int, h, x backend.Buffer) {
	n, _ := h.Shape()
	l, r, eps := &d.layers[i], d.r.Top(n), d.cfg.eps
	p.RMSNorm(x.Top(n), h, l.inputNorm, eps)
	q := d.project(p, x, i, d.round.stored.Rows)
	p.Attend(d.attended.Top(n), q.Top(n), d.kv, i, d.round.read.Rows) // [block, Q·Dim]
	p.MatMul(r, d.attended.Top(n), l.out)
	p.Add(h, h, r)
	p.RMSNorm(x.Top(n), h, l.postNorm, eps)
	p.MatMul(d.gateUp.Top(n), x.Top(n), l.gateUp) // [block, 2·FF]
	p.SwiGLU(d.act.Top(n), d.gateUp.Top(n))       // [block, FF]
	p.MatMul(r, d.act.Top(n), l.down)
	p.Add(h, h, r)
}

// grown is s with n values, which are not kept.
func grown(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
