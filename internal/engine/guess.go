package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"tfbatch/internal/draft"
)

// guess asks the drafters about the lanes that will draw a token in this round, as far as
// the policy wants guesses.
func (e *Engine) guess(ctx context.Context) error {
	if e.window == 1 {
		return nil
	}
	if err := e.collect(); err != nil {
		return err
	}
	if e.round.open = e.policy.open(&e.round); !e.round.open {
		e.discard()
		return nil
	}
	start := e.now()
	if e.quick != nil {
		e.policy.quick(&e.round, e.spans, e.window-1)
		if err := e.propose(ctx, e.quick, false); err != nil {
			return err
		}
	}
	asked := time.Duration(0)
	if e.drafter != nil && e.round.asked > 0 {
		e.offer()
	} else if e.drafter != nil {
		e.policy.ask(&e.round, e.spans)
		start := e.now()
		if err := e.propose(ctx, e.drafter, true); err != nil {
			return err
		}
		e.round.asked = len(e.asks)
		asked = e.now().Sub(start)
		e.round.draft = asked
	}
	e.policy.cut(&e.round, e.spans)
	e.round.looked = e.now().Sub(start) - asked
	return nil
}

// propose asks d about the wanted lanes that have no guess yet.
func (e *Engine) propose(ctx context.Context, d draft.Drafter, slow bool) error {
	e.ask(slow)
	if len(e.asks) == 0 {
		return nil
	}
	if err := d.Propose(ctx, e.asks); err != nil {
		return fmt.Errorf("guesses for %d lanes: %w", len(e.asks), err)
	}
	return e.take(slow)
}

// introduce opens l with the drafters. One that watches costs time for every row of its lanes, so the policy may
// keep a lane from it.
func (e *Engine) introduce(l *lane) {
	if e.quick != nil {
		e.quick.Open(int(l.index), l.ids[:l.given:l.given])
	}
	if e.drafter != nil && (e.watcher == nil || e.policy.watch()) {
		l.known, l.told = true, e.firstPart(l)
		e.drafter.Open(int(l.index), l.ids[:l.told:l.told])
	}
}

// tell says to the drafters what a lane committed.
func (e *Engine) tell(l *lane, ids []int32) {
	if e.quick != nil {
		e.quick.Committed(int(l.index), ids)
	}
	if l.known {
		e.drafter.Committed(int(l.index), ids)
	}
}

// leave closes l with the drafters.
func (e *Engine) leave(l *lane) {
	if e.quick != nil {
		e.quick.Release(int(l.index))
	}
	e.forget(l)
}

// forget closes l with the slow drafter. It cannot be asked about l again: its context would have a gap.
func (e *Engine) forget(l *lane) {
	if l.known {
		l.known, l.holding.most = false, 0
		e.drafter.Release(int(l.index))
	}
}

// asked is which span an ask is for, and how many guesses it can hold: the engine does not
// take a drafter's word for either.
type asked struct{ span, most int }

// ask lists the wanted lanes without guesses that have room for one, and that the slow drafter knows if it is to be asked. A guess must leave room for the token that
// is drawn after it, which also keeps every guess inside the lane's pages.
func (e *Engine) ask(slow bool) {
	e.asks, e.asked = e.asks[:0], e.asked[:0]
	for i := range e.spans {
		s := &e.spans[i]
		n := min(s.want, s.lane.limit-len(s.lane.ids)-1)
		if !s.draws() || n < 1 || len(s.guess) > 0 || slow && !s.lane.known {
			continue
		}
		e.asks = append(e.asks, draft.Ask{
			Lane: int(s.lane.index), Most: n, IDs: s.lane.guess[:0], Chance: s.lane.chance[:0],
		})
		e.asked = append(e.asked, asked{i, n})
	}
}

// take hands the guesses to their spans.
func (e *Engine) take(slow bool) error {
	for i, to := range e.asked {
		a, s := &e.asks[i], &e.spans[to.span]
		s.lane.guess, s.lane.chance = a.IDs, a.Chance // the memory serves the next ask
		var err error
		if s.guess, s.chance, err = e.sound(a, to.most); err != nil {
			return err
		}
		s.slow = slow
	}
	return nil
}

// sound is the guesses of a that may be used, most at the most. Nonsense among them is an error.
func (e *Engine) sound(a *draft.Ask, most int) (ids []int32, chance []float32, err error) {
	ids = a.IDs[:min(len(a.IDs), most)]
	for j, id := range ids {
		if !e.known(id) {
			return nil, nil, fmt.Errorf("guess %d of lane %d is id %d, the vocabulary has %d: %w", j, a.Lane, id, e.info.Vocab, draft.ErrNonfinite)
		}
	}
	chance = a.Chance[:min(len(a.Chance), len(ids))]
	for j, c := range chance {
		if x := float64(c); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil, fmt.Errorf("guess %d of lane %d has a chance of %v: %w", j, a.Lane, c, draft.ErrNonfinite)
		}
	}
	return ids, chance, nil
}
