package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tfbatch/internal/draft"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
)

// interrupted runs rs and now and then takes a row out of its lane. It goes on later, in whatever lane is free.
func interrupted(t rapid.TB, e *engine.Engine, rs []*engine.Request, now func() bool) (got map[string]engine.Result, times int) {
	got = make(map[string]engine.Result)
	rs = slices.Clone(rs)
	var running []*engine.Request
	for len(rs) > 0 || len(running) > 0 {
		for len(rs) > 0 && e.Room(rs[0]) {
			if err := e.Admit(rs[0]); err != nil {
				t.Fatalf("%v", err)
			}
			running, rs = append(running, rs[0]), rs[1:]
		}
		done, err := e.Step(context.Background())
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, d := range done {
			running = slices.DeleteFunc(running, func(r *engine.Request) bool { return r == d.Request })
			key := fmt.Sprintf("%s/%d", d.Request.Key, d.Request.Sample)
			d.Request = nil
			got[key] = d
		}
		if len(running) > 0 && times < 200 && now() {
			r := *running[0]
			var ok bool
			if r.Begun, ok = e.Suspend(running[0]); !ok {
				t.Fatalf("row %s runs and cannot be suspended", r.Key)
			}
			running, rs, times = running[1:], append(rs, &r), times+1
		}
	}
	return got, times
}

// Rows that are taken out of their lanes at any time, with guesses held for them or not, come to the plain replies.
func TestSuspendedRowsGoOnAsTheyWould(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs := drawRequests(rt)
		plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 8, Chunk: 4096, Context: 512}), rs)
		lanes := rapid.IntRange(1, 5).Draw(rt, "lanes")
		cfg := engine.Config{
			Lanes: lanes, Pages: 2 * lanes, Chunk: rapid.IntRange(1, 300).Draw(rt, "chunk"), Context: 512,
			Depth: engine.Depth(rapid.IntRange(-1, 6).Draw(rt, "depth")),
		}
		if rapid.Bool().Draw(rt, "copies") {
			cfg.Quick = &draft.Copy{}
		}
		if rapid.Bool().Draw(rt, "drafter") {
			cfg.Drafter = &draft.Copy{}
		}
		got, _ := interrupted(rt, newEngine(t, small, cfg), rs, func() bool { return rapid.IntRange(0, 9).Draw(rt, "suspend") == 0 })
		if diff := cmp.Diff(plain, got); diff != "" {
			rt.Fatalf("(-plain +interrupted):\n%s", diff)
		}
	})
}

// The builtin drafter gets its context back with the rows, and its guesses land as before.
func TestSuspendedRowsOfTheBuiltinPair(t *testing.T) {
	p := openPair(t)
	rs := questions(t)[:6]
	plain := run(t, p.engine(t, 1, 0, dspark.Options{}), rs)
	e := p.engine(t, 2, 4, dspark.Options{Trim: true})
	steps := 0
	got, times := interrupted(t, e, rs, func() bool { steps++; return steps%7 == 0 })
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("(-plain +interrupted):\n%s", diff)
	}
	s := e.Stats()
	t.Logf("%d interruptions, %d of %d guesses kept", times, s.Accepted, s.Drafted)
	if times < 5 || s.Accepted*10 < s.Drafted {
		t.Errorf("%d interruptions, %d of %d guesses kept", times, s.Accepted, s.Drafted)
	}
}

func TestSuspendRefusals(t *testing.T) {
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 8, Context: 64})
	r := &engine.Request{Key: "a", Prompt: []int32{1, 2}, MaxTokens: 3}
	if _, ok := e.Suspend(r); ok {
		t.Error("a row without a lane was suspended")
	}
	for want, begun := range map[string][]int32{
		"3 tokens of the reply are there already, of at most 3": {1, 2, 3},
		"reply token 1 is id 61, the vocabulary has 61":         {1, 61},
	} {
		q := *r
		if q.Begun = begun; e.Admit(&q) == nil || e.Admit(&q).Error() != want {
			t.Errorf("begun with %v: got error %v, want %s", begun, e.Admit(&q), want)
		}
	}
}

// Prompts longer than the drafter's stage, both staged before it is first asked; one row is suspended in mid-reply.
func TestSuspendedRowsWithLongPrompts(t *testing.T) {
	if testing.Short() {
		t.Skip("long replies")
	}
	p := openPair(t)
	var rs []*engine.Request
	for i, q := range questions(t)[:4:4] {
		if i%2 == 1 {
			continue
		}
		r := *q
		for r.Prompt = slices.Clone(q.Prompt); len(r.Prompt) < 2144+50*i; {
			r.Prompt = append(r.Prompt, q.Prompt...)
		}
		r.MaxTokens, r.Sampling.IgnoreEOS = 16, true
		rs = append(rs, &r)
	}
	cfg := engine.Config{Lanes: 2, Pages: 20, Chunk: 512, Context: 2500}
	off, err := engine.New(p.dev, p.model, cfg)
	if err != nil {
		t.Fatal(err)
	}
	plain := run(t, off, rs)
	c, err := dspark.Open(p.files, p.model.Info(), dspark.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := c.Load(t.Context(), p.dev, p.model, dspark.Shape{Lanes: 2, Pages: cfg.Pages}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Drafter, cfg.Depth = d, 4
	e, err := engine.New(p.dev, p.model, cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := false
	got, times := interrupted(t, e, rs, func() bool {
		now := !done && e.Stats().Tokens > 6
		done = done || now
		return now
	})
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("(-plain +interrupted):\n%s", diff)
	}
	s := e.Stats()
	t.Logf("%d prompt rows, %d interruptions, %d of %d guesses kept", s.PrefillTokens, times, s.Accepted, s.Drafted)
	if times != 1 || s.Accepted == 0 || s.PrefillTokens < 3*2144 {
		t.Errorf("%d interruptions, %d of %d guesses kept, %d prompt rows", times, s.Accepted, s.Drafted, s.PrefillTokens)
	}
}
