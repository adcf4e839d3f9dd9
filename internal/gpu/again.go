package gpu

import (
	"errors"
	"fmt"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
)

// ErrStopped is in the error of a Driver's Run whose work the system stopped, though nothing was wrong with it.
var ErrStopped = errors.New("the system stopped the GPU's work")

// Limits are what a system allows of its GPU.
type Limits struct {
	Work  int64 // of a launch, in multiply-adds; longer ones are cut where their rows allow it
	Again int   // how often a pass that was stopped is run again
}

// Limited is a Driver whose system stops what holds it up. Where Run returns [ErrStopped], any of the launches may
// have run, in part or on what others had not yet written.
type Limited interface {
	Driver
	Limits() Limits
}

// again is what makes a pass that was stopped the same when it is run from its first launch: copies of what it
// overwrites and would read once more. A pass starts from ids, so that is next to nothing: the rows of a
// convolution's ring before a prompt that is longer than the ring.
type again struct {
	touched   map[kernels.Mem]*touched
	convolved map[kernels.Span]bool // layers of rings
	spans     []kernels.Span
	copies    [][]byte // of spans
}

// touched is which bytes of a piece of memory a pass has read before it wrote them, and which it has written.
type touched struct{ exposed, written ranges }

func (a *again) of(m kernels.Mem) *touched {
	t := a.touched[m]
	if t == nil {
		t = &touched{}
		if a.touched == nil {
			a.touched = map[kernels.Mem]*touched{}
		}
		a.touched[m] = t
	}
	return t
}

// reads notes that s is read.
func (a *again) reads(s kernels.Span) {
	if t := a.of(s.Mem); !t.written.cover(s) {
		t.exposed.add(s)
	}
}

// writes notes that s is written: all of it, or some of it where it is sparse.
func (a *again) writes(s kernels.Span, sparse bool) {
	t := a.of(s.Mem)
	if t.exposed.meet(s) && !slices.Contains(a.spans, s) {
		a.spans = append(a.spans, s)
	}
	if !sparse {
		t.written.add(s)
	}
}

// save copies what is overwritten. It comes before the first launch.
func (a *again) save(d Driver) error {
	for _, s := range a.spans {
		data := make([]byte, s.Len)
		if err := d.Download(data, s.Mem, s.Off); err != nil {
			return err
		}
		a.copies = append(a.copies, data)
	}
	return nil
}

// restore puts the copies back.
func (a *again) restore(d Driver) error {
	for i, s := range a.spans {
		if err := d.Upload(s.Mem, s.Off, a.copies[i]); err != nil {
			return err
		}
	}
	return nil
}

// note tells again of a launch that is recorded. Of sparse memory it writes some of what its span says.
func (p *Pass) note(l kernels.Launch, sparse []kernels.Mem) {
	if p.dev.limits.Again == 0 {
		return
	}
	for i, s := range l.Buffers {
		if s.Mem != nil && !l.Kernel.Buffers[i].Written && !p.dev.unnoted[s.Mem] {
			p.again.reads(s)
		}
	}
	for i, s := range l.Buffers {
		if s.Mem != nil && l.Kernel.Buffers[i].Written && !p.dev.unnoted[s.Mem] {
			p.again.writes(s, slices.Contains(sparse, s.Mem))
		}
	}
}

// noteRead tells again that what the next launch writes it also reads.
func (p *Pass) noteRead(s kernels.Span) {
	if p.dev.limits.Again > 0 {
		p.again.reads(s)
	}
}

// saveRing tells again of the inputs in a layer's ring that come before rows so many that they overwrite them.
func (p *Pass) saveRing(c *Conv, layer, taps int, r backend.Rows) {
	if p.dev.limits.Again == 0 {
		return
	}
	a, ring := &p.again, c.ring(layer)
	if a.convolved[ring.State] {
		a.spans = append(a.spans, ring.State) // rows may read what others of the pass stored
		return
	}
	if a.convolved == nil {
		a.convolved = map[kernels.Span]bool{}
	}
	a.convolved[ring.State] = true
	for first, next := 0, 0; first < len(r.Lane); first = next {
		for next = first; next < len(r.Lane) && r.Lane[next] == r.Lane[first]; next++ {
		}
		for back := 1; back < taps; back++ {
			if pos := int(r.Pos[first]) - back; pos >= 0 && next-first+back > ring.Len {
				a.spans = append(a.spans, ring.At(int(r.Lane[first]), pos))
			}
		}
	}
}

// run runs the pass, and again from its first launch where it was stopped.
func (p *Pass) run() error {
	if err := p.again.save(p.dev.drv); err != nil {
		return err
	}
	for stops := 0; ; {
		err := p.attempt()
		if !errors.Is(err, ErrStopped) {
			return err
		}
		if stops++; stops > p.dev.limits.Again {
			return fmt.Errorf("stopped %d times; what is done is kept, run it once more to go on: %w", stops, err)
		}
		if err := p.again.restore(p.dev.drv); err != nil {
			return err
		}
	}
}

// ranges are bytes from..to-1, ascending, with gaps between them.
type ranges [][2]int64

// add joins s with what it touches.
func (r *ranges) add(s kernels.Span) {
	lo, hi := s.Off, s.Off+s.Len
	i := 0
	for i < len(*r) && (*r)[i][1] < lo {
		i++
	}
	j := i
	for j < len(*r) && (*r)[j][0] <= hi {
		lo, hi = min(lo, (*r)[j][0]), max(hi, (*r)[j][1])
		j++
	}
	*r = slices.Replace(*r, i, j, [2]int64{lo, hi})
}

// cover is whether all of s is there, meet whether any of it is.
func (r ranges) cover(s kernels.Span) bool {
	return slices.ContainsFunc(r, func(x [2]int64) bool { return x[0] <= s.Off && s.Off+s.Len <= x[1] })
}

func (r ranges) meet(s kernels.Span) bool {
	return slices.ContainsFunc(r, func(x [2]int64) bool { return x[0] < s.Off+s.Len && s.Off < x[1] })
}
