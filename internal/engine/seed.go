package engine

import (
	"context"
	"fmt"
	"math"

	"tfbatch/internal/draft"
)

// A drafter is first tried on prompts: there the answers are known, and no token of a reply waits for them. It is
// told all but the end of a prompt, guesses at that end, and is told the rest. The account does not see it: the few
// trials of an engine each cost no more than a plain round, once.
const (
	seedDepth   = warmDepth
	leastSeeded = 4 * seedDepth // ids; less is no text to go by
	mostSeeds   = 2             // prompts of an engine
)

var seedWish = wish{1, seedDepth, seedDepth}

// firstPart is how many of a lane's given ids the drafter is told of when it is opened.
func (e *Engine) firstPart(l *lane) int {
	if !e.seeds || l.given < leastSeeded || !e.policy.seeds() {
		return l.given
	}
	return l.given - seedDepth
}

// untilSeed is how many rows may be fed before the drafter is asked: up to the last id that it was told of.
func (l *lane) untilSeed() int {
	if !l.known || l.told == l.given {
		return math.MaxInt
	}
	return l.told - 1 - l.fed
}

// seed tries the drafter on the prompts that have been read so far. Lanes without a trial have nothing to do here.
func (e *Engine) seed(ctx context.Context) error {
	for _, l := range e.lanes {
		if l.untilSeed() > 0 {
			continue
		}
		if err := e.seedLane(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) seedLane(ctx context.Context, l *lane) error {
	asks := []draft.Ask{{Lane: int(l.index), Most: seedDepth}}
	start := e.now()
	if err := e.drafter.Propose(ctx, asks); err != nil {
		return fmt.Errorf("guesses at a prompt: %w", err)
	}
	took := e.now().Sub(start)
	ids, chance, err := e.sound(&asks[0], seedDepth)
	if err != nil {
		return err
	}
	var t trial
	t.begin(l.told, &span{lane: l, guess: ids, chance: chance, slow: true})
	e.policy.seeded(&t, l.ids[:l.given], took.Seconds())
	e.drafter.Committed(int(l.index), l.ids[l.told:l.given])
	l.told = l.given
	e.round.seeded += took
	return nil
}
