package engine

import (
	"context"
	"fmt"

	"tfbatch/internal/draft"
)

// guess asks the drafter about the lanes that will draw a token in this round, as far as
// the policy wants guesses.
func (e *Engine) guess(ctx context.Context) error {
	if e.window == 1 {
		return nil
	}
	e.policy.ask(&e.round, e.spans)
	e.ask()
	if len(e.asks) == 0 {
		return nil
	}
	start := e.now()
	err := e.cfg.Drafter.Propose(ctx, e.asks)
	e.round.draft = e.now().Sub(start)
	if err != nil {
		return fmt.Errorf("guesses for %d lanes: %w", len(e.asks), err)
	}
	e.round.asked = len(e.asks)
	if err := e.take(); err != nil {
		return err
	}
	e.policy.cut(&e.round, e.spans)
	return nil
}

// asked is which span an ask is for, and how many guesses it can hold: the engine does not
// take a drafter's word for either.
type asked struct{ span, most int }

// ask lists the wanted lanes with room for a guess. A guess must leave room for the token that
// is drawn after it, which also keeps every guess inside the lane's pages.
func (e *Engine) ask() {
	e.asks, e.asked = e.asks[:0], e.asked[:0]
	for i := range e.spans {
		s := &e.spans[i]
		n := min(s.want, s.lane.limit-len(s.lane.ids)-1)
		if !s.draws() || n < 1 {
			continue
		}
		e.asks = append(e.asks, draft.Ask{
			Lane: int(s.lane.index), Most: n, IDs: s.lane.guess[:0], Chance: s.lane.chance[:0],
		})
		e.asked = append(e.asked, asked{i, n})
	}
}

// take hands the guesses to their spans.
func (e *Engine) take() error {
	for i, to := range e.asked {
		a, s := &e.asks[i], &e.spans[to.span]
		s.lane.guess, s.lane.chance = a.IDs, a.Chance // the memory serves the next ask
		s.guess = a.IDs[:min(len(a.IDs), to.most)]
		for j, id := range s.guess {
			if !e.known(id) {
				return fmt.Errorf("guess %d of lane %d is id %d, the vocabulary has %d: %w",
					j, s.lane.index, id, e.info.Vocab, draft.ErrNonfinite)
			}
		}
		s.chance = a.Chance[:min(len(a.Chance), len(s.guess))]
	}
	return nil
}
