package cpu

import (
	"context"
	"fmt"

	"tfbatch/internal/backend"
)

// Pass runs every operator at once and keeps the first failure for Commit.
type Pass struct {
	dev   *Device
	op    string // the operator being checked
	label string // what a meter calls it
	err   error
	spent bool
}

// operators are the tasks of a device, one of each kind, as only one runs at a time.
type operators struct {
	fill    fill
	matmul  matmul
	summed  summed
	rounded rounded
	embed   embed
	norm    norm
	sum     sum
	swiglu  gated
	qkv     turn
	attend  attend
	conv    shortConv
	route   route
	combine combine
}

// Commit implements [backend.Pass].
func (p *Pass) Commit(ctx context.Context) error {
	if p.spent {
		return fmt.Errorf("cpu: commit: the pass is spent")
	}
	p.spent = true
	if p.err != nil {
		return p.err
	}
	return context.Cause(ctx)
}

// enter names the operator whose arguments are checked next.
func (p *Pass) enter(op string) {
	p.op, p.label = op, op
	if p.spent {
		p.fail("the pass is spent")
	}
	if p.dev.closed {
		p.fail("the device is closed")
	}
}

// fail keeps the first failure.
func (p *Pass) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("cpu: %s: %s", p.op, fmt.Sprintf(format, args...))
	}
}

// want fails when a size is not the one that the other arguments imply.
func (p *Pass) want(what string, got, want int) {
	if got != want {
		p.fail("%s: %d, want %d", what, got, want)
	}
}

// buffer checks that b is ours; a failure yields an empty one so that checks can go on.
func (p *Pass) buffer(name string, b backend.Buffer) *Buffer {
	own, ok := b.(*Buffer)
	switch {
	case !ok || own == nil || own.dev != p.dev:
		p.fail("%s is not a buffer of this device", name)
		return &Buffer{}
	case own.rows < 0 || len(own.data) != own.rows*own.stride:
		p.fail("%s is a view of %d rows of %d values, which the buffer does not have", name, own.rows, own.cols)
		return &Buffer{}
	}
	return own
}

// vector checks that b is a buffer of one row.
func (p *Pass) vector(name string, b backend.Buffer) *Buffer {
	own := p.buffer(name, b)
	if p.err == nil && own.rows != 1 {
		p.fail("%s has %d rows, want 1", name, own.rows)
	}
	return own
}

// weight checks that w is ours.
func (p *Pass) weight(w backend.Weight) *Weight {
	own, ok := w.(*Weight)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("w is not a weight of this device")
		return &Weight{}
	}
	return own
}

// apart fails when an operator would write what it still reads.
func (p *Pass) apart(dst, src *Buffer, name string) {
	if len(dst.data) > 0 && len(src.data) > 0 && &dst.data[0] == &src.data[0] {
		p.fail("dst is %s", name)
	}
}

// checkRows checks a batch of n rows against its lanes.
func (p *Pass) checkRows(r backend.Rows, n int) {
	p.want("lanes of rows", len(r.Lane), n)
	p.want("positions of rows", len(r.Pos), n)
	if p.err != nil {
		return
	}
	for i, pos := range r.Pos {
		if pos < 0 || r.Lane[i] < 0 {
			p.fail("row %d: lane %d, position %d", i, r.Lane[i], pos)
		}
		if i > 0 && r.Lane[i] == r.Lane[i-1] && pos != r.Pos[i-1]+1 {
			p.fail("row %d: position %d of lane %d follows %d", i, pos, r.Lane[i], r.Pos[i-1])
		}
	}
}

// checkPages checks that the keys 0..Pos of every row have pages in kv.
func (p *Pass) checkPages(r backend.Rows, kv *KV) {
	if p.err != nil {
		return
	}
	for i, lane := range r.Lane {
		if i+1 < len(r.Lane) && r.Lane[i+1] == lane {
			continue // the last row of a lane needs the most pages
		}
		if int(lane) >= len(r.Pages) {
			p.fail("row %d: lane %d, the page table has %d", i, lane, len(r.Pages))
			return
		}
		need := int(r.Pos[i])/backend.PageKeys + 1
		if len(r.Pages[lane]) < need {
			p.fail("row %d: position %d of lane %d needs %d pages, the lane has %d", i, r.Pos[i], lane, need, len(r.Pages[lane]))
			return
		}
		for c, page := range r.Pages[lane][:need] {
			if page < 0 || int(page) >= kv.shape.Pages {
				p.fail("lane %d: page %d is %d of %d", lane, c, page, kv.shape.Pages)
				return
			}
		}
	}
}

// run does all pieces of an operator.
func (p *Pass) run(t task, pieces int) {
	if p.dev.meter != nil {
		p.metered(t, pieces)
		return
	}
	p.dev.pool.run(t, pieces)
}
