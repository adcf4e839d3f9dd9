package gpu

import (
	"context"
	"fmt"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
)

// Pass records launches. The first failure sticks, and then nothing runs.
type Pass struct {
	dev      *Device
	op       string // the operator being checked
	err      error
	spent    bool
	launches []kernels.Launch
	stage    []byte // what goes to Device.stage before the first launch
	reads    []read
	rows     placed
	again    again
}

// read is a Read to do before launch number at.
type read struct {
	at  int
	dst []float32
	src kernels.Mem
}

// placed is the last Rows that was staged: the layers of a forward share it.
type placed struct {
	lane, pos, pages []int32
	spans            places
}

// places are the index tables of a batch on the device, an entry a row.
type places struct {
	lane, pos kernels.Span
	page      kernels.Span // the page that holds the row
	table     kernels.Span // where the pages of its lane begin in pages
	pages     kernels.Span
}

// Commit implements [backend.Pass].
func (p *Pass) Commit(ctx context.Context) error {
	if p.spent {
		return p.dev.errorf("commit: the pass is spent")
	}
	p.spent = true
	if p.err == nil {
		p.err = context.Cause(ctx)
	}
	if p.err != nil {
		return p.err
	}
	if err := p.run(); err != nil {
		return p.dev.errorf("commit: %w", err)
	}
	return context.Cause(ctx)
}

// attempt runs the launches, with the reads between them.
func (p *Pass) attempt() error {
	if len(p.stage) > 0 {
		if err := p.dev.drv.Upload(p.dev.stage, 0, p.stage); err != nil {
			return err
		}
	}
	done := 0
	for _, r := range p.reads {
		if done < r.at {
			if err := p.dev.drv.Run(p.launches[done:r.at]); err != nil {
				return err
			}
			done = r.at
		}
		if err := p.dev.drv.Download(bytesOf(r.dst), r.src, 0); err != nil {
			return err
		}
	}
	if done == len(p.launches) {
		return nil
	}
	return p.dev.drv.Run(p.launches[done:])
}

// enter names the operator whose arguments are checked next.
func (p *Pass) enter(op string) {
	p.op = op
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
		p.err = p.dev.errorf("%s: %s", p.op, fmt.Sprintf(format, args...))
	}
}

// want fails when a size is not the one that the other arguments imply.
func (p *Pass) want(what string, got, want int) {
	if got != want {
		p.fail("%s: %d, want %d", what, got, want)
	}
}

// below fails when a size is more than the kernels take.
func (p *Pass) below(what string, got, limit int) {
	if got > limit {
		p.fail("%s: %d, the kernels take %d", what, got, limit)
	}
}

// add records launches, leaving out those with nothing to do.
func (p *Pass) add(launches ...kernels.Launch) { p.addSparse(nil, launches...) }

// addSparse records launches that write only some of what they are given of sparse memory.
func (p *Pass) addSparse(sparse []kernels.Mem, launches ...kernels.Launch) {
	for _, l := range launches {
		if l.Grid[0] != 0 && l.Grid[1] != 0 && l.Grid[2] != 0 {
			p.launches = append(p.launches, l)
			p.note(l, sparse)
		}
	}
}

// scratch is bytes bytes of *mem, which grows as needed; launches may share it, because each
// is done before the next begins. What it had before stays until the device is closed.
func (p *Pass) scratch(mem *kernels.Mem, bytes int64) kernels.Span {
	if bytes == 0 || p.err != nil {
		return kernels.Span{}
	}
	if *mem == nil || (*mem).Bytes() < bytes {
		const least = 1 << 20
		size := int64(least)
		for size < bytes {
			size *= 2
		}
		m, err := p.dev.alloc("scratch", size)
		if err != nil {
			p.err = err
			return kernels.Span{}
		}
		*mem, p.dev.unnoted[m] = m, true
	}
	return kernels.Span{Mem: *mem, Len: bytes}
}

// ints stages indexes for the device.
func (p *Pass) ints(v []int32) kernels.Span {
	const align = 256 // what every device wants of a buffer's offset
	at := (len(p.stage) + align - 1) &^ (align - 1)
	if at+4*len(v) > stageBytes {
		p.fail("index tables of more than %d bytes in one pass", stageBytes)
		return kernels.Span{}
	}
	p.stage = append(append(p.stage, make([]byte, at-len(p.stage))...), bytesOf(v)...)
	return kernels.Span{Mem: p.dev.stage, Off: int64(at), Len: 4 * int64(len(v))}
}

// lanes stages the lanes and positions of r, unless the last operator did.
func (p *Pass) lanes(r backend.Rows) places {
	if !slices.Equal(p.rows.lane, r.Lane) || !slices.Equal(p.rows.pos, r.Pos) {
		p.rows = placed{lane: slices.Clone(r.Lane), pos: slices.Clone(r.Pos)}
		p.rows.spans.lane, p.rows.spans.pos = p.ints(r.Lane), p.ints(r.Pos)
	}
	return p.rows.spans
}

// paged stages r with the pages of its lanes, which checkPages found good.
func (p *Pass) paged(r backend.Rows) places {
	p.lanes(r)
	var pages, table, page []int32
	for i, lane := range r.Lane {
		if i == 0 || lane != r.Lane[i-1] {
			last := i
			for last+1 < len(r.Lane) && r.Lane[last+1] == lane {
				last++
			}
			table = append(table, int32(len(pages)))
			pages = append(pages, r.Pages[lane][:r.Pos[last]/backend.PageKeys+1]...)
		} else {
			table = append(table, table[i-1])
		}
		page = append(page, pages[table[i]+r.Pos[i]/backend.PageKeys])
	}
	if s := &p.rows.spans; s.pages.Mem == nil || !slices.Equal(p.rows.pages, pages) {
		p.rows.pages = pages
		s.pages, s.table, s.page = p.ints(pages), p.ints(table), p.ints(page)
	}
	return p.rows.spans
}

// buffer checks that b is ours; a failure yields an empty one so that checks can go on.
func (p *Pass) buffer(name string, b backend.Buffer) *Buffer {
	own, ok := b.(*Buffer)
	switch {
	case !ok || own == nil || own.dev != p.dev:
		p.fail("%s is not a buffer of this device", name)
		return &Buffer{}
	case own.rows < 0 || int64(own.rows)*int64(own.cols)*4 > own.mem.Bytes():
		p.fail("%s is a view of %d rows of %d values, which the buffer does not have", name, own.rows, own.cols)
		return &Buffer{}
	case int64(own.rows)*int64(own.cols) > maxValues:
		p.fail("%s has %d values, the kernels take %d", name, int64(own.rows)*int64(own.cols), int64(maxValues))
	}
	p.below("rows of "+name, own.rows, maxGrid)
	return own
}

// maxValues is what a kernel's 32-bit count of values can hold, rounded up to a threadgroup.
const maxValues = 1<<32 - 256

// vector checks that b is a buffer of one row.
func (p *Pass) vector(name string, b backend.Buffer) *Buffer {
	own := p.buffer(name, b)
	if p.err == nil {
		p.want("rows of "+name, own.rows, 1)
	}
	return own
}

// optional is the span of a vector of cols values, empty for nil.
func (p *Pass) optional(name string, b backend.Buffer, cols int) kernels.Span {
	if b == nil {
		return kernels.Span{}
	}
	own := p.vector(name, b)
	p.want("columns of "+name, own.cols, cols)
	return own.span()
}

// weight checks that w is ours and filled.
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
	if p.err == nil && dst.mem == src.mem {
		p.fail("dst is %s", name)
	}
}

// within checks that indexes from outside are below n.
func (p *Pass) within(what string, indexes []int32, n int) {
	for i, x := range indexes {
		if x < 0 || int(x) >= n {
			p.fail("row %d: %s %d of %d", i, what, x, n)
			return
		}
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
