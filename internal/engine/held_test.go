package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// faulty gives one guess, which is nonsense.
type faulty struct {
	id     int32
	chance float32
	err    error
	asked  int
}

func (f *faulty) Open(int, []int32)      {}
func (f *faulty) Committed(int, []int32) {}
func (f *faulty) Release(int)            {}

func (f *faulty) Propose(_ context.Context, asks []draft.Ask) error {
	f.asked++
	asks[0].IDs, asks[0].Chance = append(asks[0].IDs, f.id), append(asks[0].Chance, f.chance)
	return f.err
}

// Nonsense of a drafter ends the run by name, before the round that reads it commits a token: of one that waits for
// its guesses, and of one that was asked behind the round before.
func TestNonsenseOfADrafterSurfacesWaitedAndHeld(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	faults := map[string]*faulty{
		"NaN": {id: 1, chance: nan}, "infinity": {id: 1, chance: inf}, "minus infinity": {id: 1, chance: -inf},
		"id past the vocabulary": {id: 61, chance: 1}, "negative id": {id: -1, chance: 1},
		"score": {id: 1, chance: 1, err: fmt.Errorf("markov head: %w", draft.ErrNonfinite)},
	}
	for name, f := range faults {
		for _, depth := range []engine.Depth{2, engine.Auto} {
			t.Run(fmt.Sprintf("%s/%s", name, depth), func(t *testing.T) {
				f.asked = 0
				clock := &enginetest.Clock{}
				cfg := engine.Config{Lanes: 2, Pages: 2, Chunk: 8, Context: 64, Depth: depth, Drafter: f}
				e, err := engine.NewAt(enginetest.Device{Clock: clock, Cost: devices["weights"]}, small, cfg, clock.Now)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 2 {
					admit(t, e, &engine.Request{Key: fmt.Sprint(i), Prompt: []int32{1, 2}, MaxTokens: 40, Sampling: engine.Sampling{IgnoreEOS: true}})
				}
				before := e.Stats()
				for f.asked == 0 {
					before = e.Stats()
					if _, err = e.Step(context.Background()); f.asked == 0 && err != nil {
						t.Fatalf("nobody was asked, and %v", err)
					}
				}
				if depth == engine.Auto { // asked behind a round, which is whole
					if err != nil {
						t.Fatalf("a round failed by guesses that it does not read: %v", err)
					}
					before = e.Stats()
					if _, err = e.Step(context.Background()); err != nil && !strings.Contains(err.Error(), "held") {
						t.Errorf("got %v, which says nothing of the hold", err)
					}
				}
				if !errors.Is(err, draft.ErrNonfinite) || !strings.Contains(err.Error(), "DraftNonfinite") {
					t.Errorf("got %v, want DraftNonfinite", err)
				}
				if after := e.Stats(); after != before {
					t.Errorf("the round went on:\n%+v\n%+v", before, after)
				}
			})
		}
	}
}

// A hold of a row that is taken out of its lane is nothing to the next row there.
func TestReleaseWithAHoldPending(t *testing.T) {
	clock := &enginetest.Clock{}
	rs := long(4)
	cfg := engine.Config{Lanes: 2, Pages: 8, Chunk: 128, Context: 1024}
	plain := run(t, newEngine(t, small, cfg), rs)
	d := scriptOf(t, "right", oracleOf(rs, plain))
	cfg.Drafter, cfg.Depth = d, engine.Auto
	e, err := engine.NewAt(enginetest.Device{Clock: clock, Cost: devices["weights"]}, small, cfg, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	admit(t, e, rs[0])
	admit(t, e, rs[1])
	asked := 0
	guess := d.guess
	d.guess = func(at int, reply []int32, most int) []int32 {
		asked++
		clock.Pass(time.Millisecond)
		return guess(at, reply, most)
	}
	for asked == 0 {
		if _, err := e.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rs[:2] { // one of them holds a guess
		if _, ok := e.Suspend(r); !ok {
			t.Fatalf("%s has no lane", r.Key)
		}
	}
	before := e.Stats()
	admit(t, e, rs[2])
	if _, err := e.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := e.Stats(); s.Asked != before.Asked || s.Draft == before.Draft {
		t.Errorf("the hold of a row that left: %+v, then %+v", before, s)
	}
	if _, ok := e.Suspend(rs[2]); !ok {
		t.Fatal("the next row has no lane")
	}
	got := run(t, e, rs[2:])
	for _, r := range rs[2:] {
		if key := fmt.Sprintf("%s/%d", r.Key, r.Sample); fmt.Sprint(got[key]) != fmt.Sprint(plain[key]) {
			t.Errorf("%s: got %v, want %v", key, got[key], plain[key])
		}
	}
}
