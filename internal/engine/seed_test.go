package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// seedable knows the texts of its lanes, prompts and replies, and guesses them rightly or not at all rightly.
type seedable struct {
	t     *testing.T
	clock *enginetest.Clock
	text  map[int32][]int32 // prompt and reply, by the first id
	right bool
	bad   int32           // a guess to give instead
	lanes map[int][]int32 // what was told
	asked []int           // ids told beyond the prompt, at each question
	size  map[int32]int   // of the prompt, by its first id
	live  bool            // the rehearsal is over
}

func (d *seedable) Taps() []int                                            { return []int{0} }
func (d *seedable) Watch(backend.Pass, backend.Buffer, backend.Rows) error { return nil }
func (d *seedable) Seedable()                                              {}
func (d *seedable) Open(lane int, prompt []int32)                          { d.lanes[lane] = append([]int32(nil), prompt...) }
func (d *seedable) Committed(lane int, ids []int32)                        { d.lanes[lane] = append(d.lanes[lane], ids...) }
func (d *seedable) Release(lane int)                                       { delete(d.lanes, lane) }

func (d *seedable) Propose(_ context.Context, asks []draft.Ask) error {
	d.clock.Pass(3 * time.Millisecond)
	for i := range asks {
		a := &asks[i]
		told := d.lanes[a.Lane]
		if !d.live {
			continue
		}
		d.asked = append(d.asked, len(told)-d.size[told[0]])
		text := d.text[told[0]]
		if diff := cmp.Diff(text[:len(told)], told); diff != "" {
			d.t.Errorf("lane %d was told (-text +told):\n%s", a.Lane, diff)
		}
		for _, id := range ahead(len(told), text, a.Most) {
			if !d.right {
				id = (id + 1) % 61
			}
			if d.bad != 0 {
				id = d.bad
			}
			a.IDs, a.Chance = append(a.IDs, id), append(a.Chance, 0.9)
		}
	}
	return nil
}

// seedRig is an engine on a made clock with a drafter that can be tried on prompts.
func seedRig(t *testing.T, rs []*engine.Request) (*engine.Engine, *seedable, map[string]engine.Result) {
	m := small
	cfg := engine.Config{Lanes: 1, Pages: 4, Chunk: 128, Context: 1024}
	plain := run(t, newEngine(t, m, cfg), rs)
	oracle := oracleOf(rs, plain)
	d := &seedable{t: t, clock: &enginetest.Clock{}, right: true, text: map[int32][]int32{}, size: map[int32]int{}, lanes: map[int][]int32{}}
	for _, r := range rs {
		d.size[r.Prompt[0]] = len(r.Prompt)
		d.text[r.Prompt[0]] = append(append([]int32(nil), r.Prompt...), oracle[fmt.Sprint(r.Prompt)]...)
	}
	cfg.Drafter, cfg.Depth = d, engine.Auto
	e, err := engine.NewAt(enginetest.Device{Clock: d.clock, Cost: devices["weights"]}, m, cfg, d.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	d.live = true
	return e, d, plain
}

// seedRows have prompts of 40 and 20 ids in turn.
func seedRows(n int) []*engine.Request {
	rs := requests(n, engine.Sampling{Seed: 2, Temperature: 1, IgnoreEOS: true})
	for i, r := range rs {
		r.Prompt, r.MaxTokens = prompt(i, 40-20*(i%2)), 60
	}
	return rs
}

// A drafter is tried on the first long prompts before it is asked about a reply, and nobody can tell from the replies.
func TestDrafterIsTriedOnPrompts(t *testing.T) {
	rs := seedRows(8)
	e, d, plain := seedRig(t, rs)
	if diff := cmp.Diff(plain, run(t, e, rs)); diff != "" {
		t.Errorf("(-plain +seeded):\n%s", diff)
	}
	within := slices.DeleteFunc(slices.Clone(d.asked), func(n int) bool { return n > 0 })
	if d.asked[0] != -6 || !slices.Equal(within, []int{-6, -6}) {
		t.Errorf("asked at %v of the replies, want twice within a prompt, and there first", d.asked)
	}
	if s := e.Stats(); s.Accepted*3 < s.Tokens {
		t.Errorf("it is always right, and %d of %d tokens were guessed", s.Accepted, s.Tokens)
	}
}

// What the prompt shows decides whether the first rounds of a reply are drafted.
func TestTrialOnAPromptDecidesTheFirstRounds(t *testing.T) {
	for _, right := range []bool{true, false} {
		e, d, _ := seedRig(t, seedRows(1))
		d.right = right
		admit(t, e, seedRows(1)[0])
		for range 2 + 2 + 3 { // the prompt in two parts, plain rounds for the reference, and three that may be drafted
			if _, err := e.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s := e.Stats()
		if drafted := s.Drafted > 0; drafted != right || d.asked[0] != -6 || !right && len(d.asked) != 1 {
			t.Errorf("right %t: asked at %v of the reply, %+v", right, d.asked, s)
		}
	}
}

func TestNonsenseOnAPromptEndsTheRun(t *testing.T) {
	e, d, _ := seedRig(t, seedRows(1))
	d.bad = 61
	admit(t, e, seedRows(1)[0])
	_, err := e.Step(t.Context())
	for range 3 {
		if err == nil {
			_, err = e.Step(t.Context())
		}
	}
	if s := e.Stats(); !errors.Is(err, draft.ErrNonfinite) || s.Tokens != 0 {
		t.Errorf("got %v after %d tokens", err, s.Tokens)
	}
}
