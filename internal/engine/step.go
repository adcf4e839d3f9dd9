package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tfbatch/internal/draft"
)

// span is a lane's share of one forward: the ids it feeds, then guesses at what follows.
type span struct {
	lane  *lane
	feed  int     // ids[fed : fed+feed] are rows
	guess []int32 // rows after them; only where the feed reaches the last id
	head  int     // place of its first wanted row in the heads; -1 while the prompt goes on
}

// Step runs one forward over the running lanes and returns the rows that ended with it.
// An error is a failure of the device or the drafter: the run is over.
func (e *Engine) Step(ctx context.Context) ([]Result, error) {
	if len(e.lanes) == 0 {
		return nil, nil
	}
	e.schedule()
	if err := e.guess(ctx); err != nil {
		return nil, err
	}
	if err := e.forward(ctx); err != nil {
		return nil, err
	}
	e.verify()
	return e.retire(), nil
}

// schedule gives every lane that is decoding its row, and the oldest prompts up to Chunk rows.
func (e *Engine) schedule() {
	e.spans = e.spans[:0]
	room := e.cfg.Chunk
	for _, l := range e.lanes {
		feed := len(l.ids) - l.fed
		if l.fed < len(l.req.Prompt) {
			feed = min(feed, room)
			room -= feed
			e.stats.PrefillTokens += int64(feed)
		}
		if feed > 0 {
			e.spans = append(e.spans, span{lane: l, feed: feed, head: -1})
		}
	}
}

// guess asks the drafter about the lanes that will draw a token in this round.
func (e *Engine) guess(ctx context.Context) error {
	if e.window == 1 {
		return nil
	}
	e.ask()
	if len(e.asks) == 0 {
		return nil
	}
	start := time.Now()
	err := e.cfg.Drafter.Propose(ctx, e.asks)
	e.stats.Draft += time.Since(start)
	if err != nil {
		return fmt.Errorf("guesses for %d lanes: %w", len(e.asks), err)
	}
	return e.grant()
}

// ask lists the lanes with room for a guess. A guess must leave room for the token that
// is drawn after it, which also keeps every guess inside the lane's pages.
func (e *Engine) ask() {
	n := 0
	for i := range e.spans {
		l := e.spans[i].lane
		most := min(e.window-1, l.limit-len(l.ids)-1)
		if !e.spans[i].draws() || most < 1 {
			continue
		}
		if n == cap(e.asks) {
			e.asks = append(e.asks[:n], draft.Ask{})
		}
		e.asks = e.asks[:n+1]
		a := &e.asks[n]
		*a = draft.Ask{Lane: int(l.index), Most: most, IDs: a.IDs[:0], Chance: a.Chance[:0]}
		n++
	}
	e.asks = e.asks[:n]
}

// grant hands the guesses to their spans, which come in the order of the asks.
func (e *Engine) grant() error {
	s := 0
	for i := range e.asks {
		a := &e.asks[i]
		for e.spans[s].lane.index != int32(a.Lane) {
			s++
		}
		ids := a.IDs[:min(len(a.IDs), a.Most)]
		for j, id := range ids {
			if !e.known(id) {
				return fmt.Errorf("guess %d of lane %d is id %d, the vocabulary has %d: %w", j, a.Lane, id, e.info.Vocab, draft.ErrNonfinite)
			}
		}
		e.spans[s].guess = ids
	}
	return nil
}

// draws reports whether the span reaches the lane's last id, so that a token is drawn.
func (s *span) draws() bool { return s.lane.fed+s.feed == len(s.lane.ids) }

// forward runs the spans as one batch and leaves the wanted logits in e.logits.
func (e *Engine) forward(ctx context.Context) error {
	e.place()
	start := time.Now()
	p := e.dev.Begin()
	out := e.state.Forward(p, &e.batch)
	if n := len(e.batch.Heads) * e.info.Vocab; n > 0 {
		if n > cap(e.logits) {
			e.logits = make([]float32, n)
		}
		e.logits = e.logits[:n]
		p.Read(e.logits, out.Logits)
	}
	if err := p.Commit(ctx); err != nil {
		return fmt.Errorf("forward of %d rows: %w", len(e.batch.IDs), err)
	}
	e.stats.Forward += time.Since(start)
	e.stats.Rounds++
	e.stats.Rows += int64(len(e.batch.IDs))
	return nil
}

// place lays the spans out as flat rows. Logits are wanted from the last fed row on.
func (e *Engine) place() {
	b := &e.batch
	b.IDs, b.Heads = b.IDs[:0], b.Heads[:0]
	b.Rows.Lane, b.Rows.Pos = b.Rows.Lane[:0], b.Rows.Pos[:0]
	b.Rows.Pages = e.pages
	for i := range e.spans {
		s := &e.spans[i]
		l := s.lane
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
	if e.window > 1 {
		e.cfg.Drafter.Release(int(l.index))
	}
	l.req = nil
}
