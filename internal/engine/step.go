package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tfbatch/internal/backend"
)

// span is a lane's share of one forward: the ids it feeds, then guesses at what follows.
type span struct {
	lane  *lane
	feed  int     // ids[fed : fed+feed] are rows
	guess []int32 // rows after them; only where the feed reaches the last id
	head  int     // place of its first wanted row in the heads; -1 while the prompt goes on

	want   int       // guesses to ask for
	chance []float32 // of each guess, as far as the drafter says
	slow   bool      // the guesses are not Quick's
	weight float64   // what a token of the lane is worth to the policy, 1 where it is worth as much as any
	drawn  int       // tokens that the round brought
}

// draws reports whether the span reaches the lane's last id, so that a token is drawn.
func (s *span) draws() bool { return s.lane.fed+s.feed == len(s.lane.ids) }

// Step runs one forward over the running lanes and returns the rows that ended with it.
// An error is a failure of the device or the drafter: the run is over.
func (e *Engine) Step(ctx context.Context) ([]Result, error) {
	if len(e.lanes) == 0 {
		return nil, nil
	}
	start := e.now()
	e.round = round{}
	if err := e.seed(ctx); err != nil {
		return nil, err
	}
	e.schedule()
	if err := e.guess(ctx); err != nil {
		return nil, err
	}
	if err := e.forward(ctx); err != nil {
		return nil, err
	}
	e.verify()
	e.settle(start)
	e.behind(ctx)
	return e.retire(), nil
}

// schedule gives every lane that is decoding its row, and the oldest prompts up to Chunk rows.
func (e *Engine) schedule() {
	e.spans = e.spans[:0]
	room := e.cfg.Chunk
	for _, l := range e.lanes {
		feed := len(l.ids) - l.fed
		if l.fed < l.given {
			feed = min(feed, room, l.untilSeed())
			room -= feed
			e.round.prompt += feed
		}
		if feed == 0 {
			continue
		}
		s := span{lane: l, feed: feed, head: -1}
		if s.draws() {
			e.round.lanes++
			e.round.context += len(l.ids)
		}
		e.spans = append(e.spans, s)
	}
	e.round.context /= max(e.round.lanes, 1)
	e.round.idle = len(e.idle) > 0
}

// forward runs the spans as one batch and leaves the wanted logits in e.logits.
func (e *Engine) forward(ctx context.Context) error {
	e.place()
	start, busy := e.now(), e.busy()
	p := e.dev.Begin()
	out := e.state.Forward(p, &e.batch)
	if n := len(e.batch.Heads) * e.info.Vocab; n > 0 {
		if n > cap(e.logits) {
			e.logits = make([]float32, n)
		}
		e.logits = e.logits[:n]
		p.Read(e.logits, out.Logits)
	}
	if e.batch.Taps {
		if err := e.watcher.Watch(p, out.Taps, e.batch.Rows); err != nil {
			return fmt.Errorf("taps of %d rows: %w", len(e.batch.IDs), err)
		}
	}
	if err := p.Commit(ctx); err != nil {
		return fmt.Errorf("forward of %d rows: %w", len(e.batch.IDs), err)
	}
	e.round.forward, e.round.busy = e.now().Sub(start), e.busy()-busy
	return nil
}

// busy is how long the device has worked, where it knows.
func (e *Engine) busy() time.Duration {
	if d, ok := e.dev.(backend.TimedDevice); ok {
		return d.Busy()
	}
	return 0
}

// place lays the spans out as flat rows. Logits are wanted from the last fed row on.
func (e *Engine) place() {
	b := &e.batch
	b.IDs, b.Heads = b.IDs[:0], b.Heads[:0]
	b.Rows.Lane, b.Rows.Pos = b.Rows.Lane[:0], b.Rows.Pos[:0]
	b.Rows.Pages, b.Taps = e.pages, false
	for i := range e.spans {
		s := &e.spans[i]
		l := s.lane
		b.Taps = b.Taps || e.watcher != nil && l.known
		b.IDs = append(b.IDs, l.ids[l.fed:l.fed+s.feed]...)
		b.IDs = append(b.IDs, s.guess...)
		for r := range s.feed + len(s.guess) {
			b.Rows.Lane = append(b.Rows.Lane, l.index)
			b.Rows.Pos = append(b.Rows.Pos, int32(l.fed+r))
		}
		if !s.draws() {
			continue
		}
		s.head = len(b.Heads)
		for r := range 1 + len(s.guess) {
			b.Heads = append(b.Heads, int32(len(b.IDs)-len(s.guess)-1+r))
		}
	}
}

// settle counts the round and tells the policy how it went.
func (e *Engine) settle(start time.Time) {
	r := &e.round
	r.rows = len(e.batch.IDs)
	r.rest = e.now().Sub(start) - (r.draft - r.held) - r.looked - r.seeded
	r.watched = e.batch.Taps
	e.stats.add(r)
	if e.window > 1 {
		e.policy.settle(r, e.spans)
	}
	if e.watcher != nil && e.policy.parked() {
		for _, l := range e.lanes {
			e.forget(l)
		}
	}
}

// retire takes the finished lanes out and returns their rows.
func (e *Engine) retire() []Result {
	var done []Result
	live := e.lanes[:0]
	for _, l := range e.lanes {
		if !l.done() {
			live = append(live, l)
			continue
		}
		done = append(done, Result{Request: l.req, Tokens: slices.Clone(l.reply()), Finish: l.finish, Err: l.err})
		e.release(l)
	}
	clear(e.lanes[len(live):])
	e.lanes = live
	return done
}

func (e *Engine) release(l *lane) {
	e.pool.give(l.pages)
	e.pages[l.index] = nil
	e.idle = append(e.idle, l)
	e.leave(l)
	l.req = nil
}
