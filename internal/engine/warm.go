package engine

import (
	"context"
	"fmt"
	"time"

	"tfbatch/internal/draft"
)

// warmDepth is the deeper of the two depths at which a drafter is timed; every released block is longer.
const warmDepth = 6

// timing is how long a drafter took for w.
type timing struct {
	wish
	seconds float64
}

// prepare makes sure that guesses cannot be seen, and that their times are known.
func (e *Engine) prepare(ctx context.Context) error {
	if err := e.even(ctx); err != nil {
		return fmt.Errorf("guesses are refused: %w", err)
	}
	if err := e.warm(ctx, min(e.cfg.Lanes, e.cfg.Pages), min(e.window, e.cfg.Context)); err != nil {
		return fmt.Errorf("warm the drafter: %w", err)
	}
	return nil
}

// warm shows a drafter that watches n rows of a made text on some lanes and asks about them, each time twice: no
// row of the job then pays for a first time, and the policy hears the times. The lanes are closed again, also where it
// fails.
func (e *Engine) warm(ctx context.Context, lanes, n int) error {
	if e.watcher == nil || e.cfg.Context <= n {
		return nil
	}
	b := e.made(lanes, 0, n)
	b.Heads, b.Taps = nil, true
	text := append(b.IDs[:n:n], 0)
	for lane := range lanes {
		e.watcher.Open(lane, text)
	}
	defer func() {
		for lane := range lanes {
			e.watcher.Release(lane)
		}
	}()
	p := e.dev.Begin()
	out := e.state.Forward(p, b)
	if err := e.watcher.Watch(p, out.Taps, b.Rows); err != nil {
		return err
	}
	if err := p.Commit(ctx); err != nil {
		return err
	}
	var times []timing
	for _, w := range []wish{{1, slack, slack}, {1, warmDepth, warmDepth}, {lanes, slack, lanes * slack}, {lanes, warmDepth, lanes * warmDepth}} {
		took := time.Duration(0)
		for range 2 {
			var err error
			if took, err = e.rehearse(ctx, w); err != nil {
				return err
			}
		}
		times = append(times, timing{w, took.Seconds()})
	}
	e.policy.rehearsed(times)
	return nil
}

// rehearse asks for w and forgets the answer.
func (e *Engine) rehearse(ctx context.Context, w wish) (time.Duration, error) {
	asks := make([]draft.Ask, w.lanes)
	for lane := range asks {
		asks[lane] = draft.Ask{Lane: lane, Most: w.depth}
	}
	start := e.now()
	if err := e.watcher.Propose(ctx, asks); err != nil {
		return 0, fmt.Errorf("first guesses for %d lanes: %w", w.lanes, err)
	}
	return e.now().Sub(start), nil
}
