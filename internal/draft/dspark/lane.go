package dspark

import (
	"fmt"

	"tfbatch/internal/backend"
)

// lane is what the drafter knows of a sequence.
type lane struct {
	ids   int     // committed ids, prompt and reply
	last  int32   // the last of them: the anchor, which the target has not processed yet
	seen  int     // the target's rows were watched from 0 up to here
	pages []int32 // of context, and of the block behind it
	open  bool
	asked bool // in this round
}

// anchor is the position of the last committed id. Context below it stands; above it are wrong guesses.
func (l *lane) anchor() int { return l.ids - 1 }

// whole reports whether all context of the lane has been watched. It is not while the prompt is being read.
func (l *lane) whole() bool { return l.seen >= l.anchor() }

// Open begins a lane; no context yet.
func (d *Drafter) Open(lane int, prompt []int32) {
	l := &d.lanes[lane]
	l.ids, l.last, l.seen, l.open = len(prompt), prompt[len(prompt)-1], 0, true
}

// Committed moves the anchor on.
func (d *Drafter) Committed(lane int, ids []int32) {
	l := &d.lanes[lane]
	l.ids += len(ids)
	l.last = ids[len(ids)-1]
}

// Release gives the lane's pages back and forgets what was staged for it.
func (d *Drafter) Release(lane int) {
	l := &d.lanes[lane]
	d.stage.drop(int32(lane), 0)
	d.free = append(d.free, l.pages...)
	l.pages, l.open = l.pages[:0], false
}

// reach gives the lane pages for all positions below end.
func (d *Drafter) reach(l *lane, end int) {
	for len(l.pages)*backend.PageKeys < end {
		last := len(d.free) - 1
		if last < 0 {
			panic(fmt.Sprintf("dspark: no page left for position %d of a lane with %d", end-1, len(l.pages)))
		}
		l.pages = append(l.pages, d.free[last])
		d.free = d.free[:last]
	}
}

// place is a position of a lane.
type place struct{ lane, pos int32 }

// rows is a batch for the device. A run of consecutive positions of a lane is a lane of its own there, so a
// batch may hold rows of a lane in any order and the device's lanes are no lanes of ours.
type rows struct {
	backend.Rows
	last place
}

func (r *rows) reset() {
	r.Lane, r.Pos, r.Pages = r.Lane[:0], r.Pos[:0], r.Pages[:0]
}

// add appends a row that continues the run before it, or begins one. pages may have grown since that one began.
func (r *rows) add(at place, pages []int32) {
	if len(r.Lane) == 0 || r.last.lane != at.lane || r.last.pos+1 != at.pos {
		r.alone(at, pages)
		return
	}
	r.Pages[len(r.Pages)-1] = pages
	r.append(at)
}

// alone appends a row that is a run by itself, whatever was before it.
func (r *rows) alone(at place, pages []int32) {
	r.Pages = append(r.Pages, pages)
	r.append(at)
}

func (r *rows) append(at place) {
	r.Lane = append(r.Lane, int32(len(r.Pages)-1))
	r.Pos = append(r.Pos, at.pos)
	r.last = at
}
