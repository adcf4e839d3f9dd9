package dspark

import (
	"fmt"

	"tfbatch/internal/backend"
)

// The stage is memory of the host. Rows that wait there for long are those of lanes without guesses, and cost
// no arithmetic if the lane is dropped before it is asked about; at the released sizes, five taps of 2048, a row
// is 40 KB. More rows than the limit no run of moderate prompts and replies leaves behind.
const (
	stageBytes = 32 << 20
	stageRows  = 4096
)

// contextRows is how many rows become context in one pass. Two matrices of the target's width are read for
// it; over a page of rows that is nothing.
const contextRows = backend.PageKeys

// stage holds taps that are not context yet, in no order. A lane that gets no guesses for a while costs a copy
// of its rows, and the projections only when it is asked about or the stage is full.
type stage struct {
	width int
	most  int       // rows
	data  []float32 // [most, width]
	at    []place   // of every row; lane -1 where the row was replaced
	taken []float32 // [contextRows, width]: rows on their way to the device
	out   []place   // of each of them
}

func newStage(width int) stage {
	most := min(max(stageBytes/(4*width), contextRows), stageRows)
	return stage{width: width, most: most, data: make([]float32, most*width), taken: make([]float32, contextRows*width)}
}

// add appends rows and returns where their taps go.
func (s *stage) add(at []place) []float32 {
	from := len(s.at)
	s.at = append(s.at, at...)
	return s.data[from*s.width : len(s.at)*s.width]
}

// drop forgets the rows of a lane from a position on.
func (s *stage) drop(lane, from int32) {
	for i, at := range s.at {
		if at.lane == lane && at.pos >= from {
			s.at[i].lane = -1
		}
	}
}

// take moves up to contextRows rows that are wanted and stand to s.taken. Those of them that do not stand are
// forgotten.
func (s *stage) take(wanted, stands func(place) bool) {
	s.out = s.out[:0]
	for i := 0; i < len(s.at); {
		at := s.at[i]
		if at.lane >= 0 && !wanted(at) {
			i++
			continue
		}
		if at.lane >= 0 && stands(at) {
			if len(s.out) == contextRows {
				return
			}
			copy(s.taken[len(s.out)*s.width:], s.row(i))
			s.out = append(s.out, at)
		}
		s.remove(i)
	}
}

func (s *stage) row(i int) []float32 { return s.data[i*s.width:][:s.width] }

// remove puts the last row in the place of row i.
func (s *stage) remove(i int) {
	last := len(s.at) - 1
	if i < last {
		copy(s.row(i), s.row(last))
		s.at[i] = s.at[last]
	}
	s.at = s.at[:last]
}

// Watch implements [draft.Watcher]: rows of open lanes are staged, or become context at once where there is no
// room for them.
func (d *Drafter) Watch(p backend.Pass, taps backend.Buffer, r backend.Rows) error {
	d.advance(r)
	at, index := d.watched(r)
	if len(d.stage.at)+len(at) > d.stage.most {
		n, err := d.unstage(func(place) bool { return true })
		if err != nil {
			return err
		}
		if n > 0 {
			d.absorb(p, d.taps.Top(n), d.stage.out)
		}
	}
	fits := len(d.stage.at)+len(at) <= d.stage.most
	if fits && len(at) == len(r.Lane) {
		p.Read(d.stage.add(at), taps)
		return nil
	}
	for len(at) > 0 {
		n := min(len(at), contextRows)
		part := d.taps.Top(n)
		p.Gather(part, taps, index[:n])
		if fits {
			p.Read(d.stage.add(at[:n]), part)
		} else {
			// Some may turn out to be wrong guesses: nothing reads above the anchor, and what goes there later replaces them.
			d.absorb(p, part, at[:n])
		}
		at, index = at[n:], index[n:]
	}
	return nil
}

// watch is what one call of Watch works with.
type watch struct {
	at    []place
	index []int32
}

// watched lists the rows of open lanes, and their numbers among all. p may look at the numbers until it is
// committed.
func (d *Drafter) watched(r backend.Rows) (at []place, index []int32) {
	w := &d.watch
	w.at, w.index = w.at[:0], w.index[:0]
	for i, lane := range r.Lane {
		if d.lanes[lane].open {
			w.at, w.index = append(w.at, place{lane, r.Pos[i]}), append(w.index, int32(i))
		}
	}
	return w.at, w.index
}

// advance notes how far lanes were watched; rows that are placed again replace what was staged there.
func (d *Drafter) advance(r backend.Rows) {
	for i, lane := range r.Lane {
		l, pos := &d.lanes[lane], int(r.Pos[i])
		if !l.open {
			continue
		}
		if i == 0 || r.Lane[i-1] != lane {
			if pos > l.seen {
				panic(fmt.Sprintf("dspark: lane %d goes from position %d to %d", lane, l.seen, pos))
			}
			if pos < l.seen {
				d.stage.drop(lane, r.Pos[i])
			}
		}
		l.seen = pos + 1
	}
}

// stands reports whether a staged row is context: the target did go on with its token.
func (d *Drafter) stands(at place) bool { return int(at.pos) < d.lanes[at.lane].anchor() }

// unstage brings up to contextRows staged rows that are wanted to d.taps; d.stage.out says which, until the next call.
func (d *Drafter) unstage(wanted func(place) bool) (n int, err error) {
	d.stage.take(wanted, d.stands)
	if n = len(d.stage.out); n == 0 {
		return 0, nil
	}
	if err := d.dev.Write(d.taps, d.stage.taken[:n*d.stage.width]); err != nil {
		return 0, fmt.Errorf("drafter: staged taps: %w", err)
	}
	return n, nil
}

// absorb makes keys and values of taps [n, taps·Hidden].
func (d *Drafter) absorb(p backend.Pass, taps backend.Buffer, at []place) {
	var r rows // p may look at it until it is committed
	d.addContext(&r, at)
	c := d.context(p, taps)
	for i := range d.layers {
		d.project(p, c, i, r.Rows)
	}
}

func (d *Drafter) addContext(r *rows, at []place) {
	for _, x := range at {
		l := &d.lanes[x.lane]
		d.reach(l, int(x.pos)+1)
		r.add(x, l.pages)
	}
}

// context is what all layers see of taps: norm(fc·taps). [n, Hidden]
func (d *Drafter) context(p backend.Pass, taps backend.Buffer) backend.Buffer {
	n, _ := taps.Shape()
	c := d.c.Top(n)
	p.MatMul(c, taps, d.fc)
	p.RMSNorm(c, c, d.contextNorm, d.cfg.eps)
	return c
}

// project stores the keys and values of x in a layer and returns the queries. [n, Q·Dim]
func (d *Drafter) project(p backend.Pass, x backend.Buffer, layer int, r backend.Rows) backend.Buffer {
	n, _ := x.Shape()
	l, qkv, q := &d.layers[layer], d.qkv.Top(n), d.q.Top(n)
	h := backend.Heads{Q: d.cfg.Q, KV: d.cfg.KV, Dim: d.cfg.Dim, QNorm: l.qNorm, KNorm: l.kNorm, Eps: d.cfg.eps, Rope: d.rope, Pairing: d.cfg.pairing}
	p.MatMul(qkv, x, l.qkv)
	p.QKV(q, qkv, h, d.kv, layer, r)
	return q
}
