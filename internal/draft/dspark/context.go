package dspark

import (
	"fmt"

	"tfbatch/internal/backend"
)

// stageRows is how many rows of taps wait on the host until they are wanted. Two matrices of the target's
// width are read to turn them into context; over a page of rows that is nothing, and at the released sizes,
// five taps of 2048, they take 10 MB.
const stageRows = backend.PageKeys

// stage holds taps that are not context yet. A lane that gets no guesses for a while costs a copy of its
// rows, and the projections only when the stage is full.
type stage struct {
	width int
	data  []float32 // [stageRows, width]
	at    []place   // of every row; lane -1 where the row was replaced
}

func newStage(width int) stage {
	return stage{width: width, data: make([]float32, stageRows*width), at: make([]place, 0, stageRows)}
}

// add appends rows and returns where their taps go.
func (s *stage) add(r backend.Rows) []float32 {
	from := len(s.at)
	for i, lane := range r.Lane {
		s.at = append(s.at, place{lane, r.Pos[i]})
	}
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

// keep moves the rows that stand together and forgets the others.
func (s *stage) keep(stands func(place) bool) {
	n := 0
	for i, at := range s.at {
		if at.lane < 0 || !stands(at) {
			continue
		}
		if n < i {
			copy(s.data[n*s.width:][:s.width], s.data[i*s.width:])
		}
		s.at[n] = at
		n++
	}
	s.at = s.at[:n]
}

// Watch implements [draft.Watcher]: rows are staged, or become context at once where they are too many.
func (d *Drafter) Watch(p backend.Pass, taps backend.Buffer, r backend.Rows) error {
	d.advance(r)
	n := len(r.Lane)
	if len(d.stage.at)+n > stageRows {
		at, err := d.unstage()
		if err != nil {
			return err
		}
		if len(at) > 0 {
			d.absorb(p, d.taps.Top(len(at)), at)
		}
	}
	if n <= stageRows {
		p.Read(d.stage.add(r), taps)
		return nil
	}
	for from := 0; from < n; from += stageRows {
		d.absorbPart(p, taps, r, from, min(from+stageRows, n))
	}
	return nil
}

// advance notes how far lanes were watched; rows that are placed again replace what was staged there.
func (d *Drafter) advance(r backend.Rows) {
	for i, lane := range r.Lane {
		l, pos := &d.lanes[lane], int(r.Pos[i])
		if i == 0 || r.Lane[i-1] != lane {
			if pos > l.seen {
				panic(fmt.Sprintf("dspark: lane %d goes from position %d to %d", lane, l.seen, pos))
			}
			d.stage.drop(lane, r.Pos[i])
		}
		l.seen = pos + 1
	}
}

// stands reports whether a staged row is context: the target did go on with its token.
func (d *Drafter) stands(at place) bool { return int(at.pos) < d.lanes[at.lane].anchor() }

// unstage empties the stage into d.taps and says which rows those are, until the next row is staged.
func (d *Drafter) unstage() ([]place, error) {
	d.stage.keep(d.stands)
	at := d.stage.at
	d.stage.at = at[:0]
	if len(at) == 0 {
		return nil, nil
	}
	if err := d.dev.Write(d.taps, d.stage.data[:len(at)*d.stage.width]); err != nil {
		return nil, fmt.Errorf("drafter: staged taps: %w", err)
	}
	return at, nil
}

// absorbPart makes rows from..to-1 of a forward context. Some may turn out to be wrong guesses: nothing reads
// above the anchor, and what goes there later replaces them.
func (d *Drafter) absorbPart(p backend.Pass, taps backend.Buffer, r backend.Rows, from, to int) {
	at, index := make([]place, 0, to-from), make([]int32, 0, to-from)
	for i := from; i < to; i++ {
		at = append(at, place{r.Lane[i], r.Pos[i]})
		index = append(index, int32(i))
	}
	part := d.taps.Top(to - from)
	p.Gather(part, taps, index)
	d.absorb(p, part, at)
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
