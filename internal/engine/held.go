package engine

import (
	"context"
	"fmt"
	"time"

	"tfbatch/internal/draft"
)

// held is what the drafter was asked behind a round, once its tokens were committed. Nobody looks at the answer
// before the next round. A failure travels with it and ends the run there, before anything is committed.
type held struct {
	lanes int // asked
	took  time.Duration
	err   error
}

// holding is a lane's part of that. most is 0 where the lane was not asked about.
type holding struct {
	most   int
	ids    []int32
	chance []float32
}

// behind asks the drafter about lanes that go on after this round, if the policy wants to know more of it.
func (e *Engine) behind(ctx context.Context) {
	if e.drafter == nil || !e.round.open || e.round.asked > 0 {
		return
	}
	for i := range e.spans {
		e.spans[i].want = 0
	}
	e.policy.behind(&e.round, e.spans)
	e.asks, e.asked = e.asks[:0], e.asked[:0]
	for i := range e.spans {
		l := e.spans[i].lane
		n := min(e.spans[i].want, l.limit-len(l.ids)-1)
		if n < 1 || !l.known || l.done() {
			continue
		}
		e.asks = append(e.asks, draft.Ask{Lane: int(l.index), Most: n, IDs: l.holding.ids[:0], Chance: l.holding.chance[:0]})
		e.asked = append(e.asked, asked{i, n})
	}
	if len(e.asks) == 0 {
		return
	}
	start := e.now()
	err := e.drafter.Propose(ctx, e.asks)
	e.held = held{lanes: len(e.asks), took: e.now().Sub(start), err: err}
	e.hold()
}

// hold keeps the answers with their lanes, and the first failure.
func (e *Engine) hold() {
	for i, to := range e.asked {
		h := &e.spans[to.span].lane.holding
		var err error
		if h.ids, h.chance, err = e.sound(&e.asks[i], to.most); err != nil && e.held.err == nil {
			e.held.err = err
		}
		h.most = to.most
	}
}

// collect reads what was held. The guesses go on trial, whether or not this round can use them; lanes that are gone
// count no more.
func (e *Engine) collect() error {
	h := e.held
	if h.lanes == 0 {
		return nil
	}
	e.held = held{}
	if h.err != nil {
		return fmt.Errorf("guesses held for %d lanes: %w", h.lanes, h.err)
	}
	e.round.draft, e.round.held = h.took, h.took
	for i := range e.spans {
		l := e.spans[i].lane
		if l.holding.most == 0 {
			continue
		}
		e.round.asked++
		l.trial.begin(len(l.ids), &span{lane: l, guess: l.holding.ids, chance: l.holding.chance, slow: true})
	}
	return nil
}

// offer gives the held guesses to their spans, where Quick has none.
func (e *Engine) offer() {
	for i := range e.spans {
		s := &e.spans[i]
		h := &s.lane.holding
		if s.want = 0; h.most > 0 && len(s.guess) == 0 {
			s.want, s.guess, s.chance, s.slow = h.most, h.ids, h.chance, true
		}
		h.most = 0
	}
}

// discard forgets the held guesses, but not their trial.
func (e *Engine) discard() {
	for i := range e.spans {
		e.spans[i].lane.holding.most = 0
	}
}
