package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// scripted is a drafter that knows the replies and guesses by a script. It also holds the
// engine to the order of calls that draft.Drafter promises.
type scripted struct {
	t      testing.TB
	oracle map[string][]int32 // by prompt
	guess  func(at int, reply []int32, most int) []int32
	lanes  map[int]*scriptedLane
	calls  int
}

type scriptedLane struct {
	reply []int32
	at    int // committed so far
}

func (d *scripted) Open(lane int, prompt []int32) {
	d.calls++
	if d.lanes[lane] != nil {
		d.t.Errorf("lane %d opened twice", lane)
	}
	reply, ok := d.oracle[fmt.Sprint(prompt)]
	if !ok {
		d.t.Errorf("lane %d opened with an unknown prompt", lane)
	}
	d.lanes[lane] = &scriptedLane{reply: reply}
}

func (d *scripted) Propose(_ context.Context, asks []draft.Ask) error {
	d.calls++
	seen := map[int]bool{}
	for i := range asks {
		a := &asks[i]
		l := d.lanes[a.Lane]
		if l == nil || seen[a.Lane] || a.Most < 1 || len(a.IDs) > 0 || len(a.Chance) > 0 {
			d.t.Errorf("ask %+v of lane %+v", a, l)
			continue
		}
		seen[a.Lane] = true
		a.IDs = append(a.IDs, d.guess(l.at, l.reply, a.Most)...)
	}
	return nil
}

func (d *scripted) Committed(lane int, ids []int32) {
	d.calls++
	l := d.lanes[lane]
	if want := l.reply[l.at:]; len(ids) == 0 || len(ids) >= len(want) || !slices.Equal(ids, want[:len(ids)]) {
		d.t.Errorf("lane %d committed %v, the reply goes on with %v", lane, ids, want)
	}
	l.at += len(ids)
}

func (d *scripted) Release(lane int) {
	d.calls++
	if d.lanes[lane] == nil {
		d.t.Errorf("lane %d released and not open", lane)
	}
	delete(d.lanes, lane)
}

// scripts are ways to guess. A reply goes on after its end with ids that never come.
var scripts = map[string]func(at int, reply []int32, most int) []int32{
	"silent": func(int, []int32, int) []int32 { return nil },
	"right":  func(at int, reply []int32, most int) []int32 { return ahead(at, reply, most) },
	"wrong": func(at int, reply []int32, most int) []int32 {
		ids := ahead(at, reply, most)
		for i := range ids {
			ids[i] = (ids[i] + 1) % 61
		}
		return ids
	},
	"partly right": func(at int, reply []int32, most int) []int32 {
		ids := ahead(at, reply, most)
		if wrong := at * 7 % (most + 1); wrong < most {
			ids[wrong] = (ids[wrong] + 5) % 61
		}
		return ids
	},
	"right after a miss": func(at int, reply []int32, most int) []int32 {
		ids := ahead(at, reply, most)
		ids[0] = (ids[0] + 1) % 61
		return ids
	},
	"random": func(at int, reply []int32, most int) []int32 {
		rng := rand.New(rand.NewPCG(uint64(at), uint64(len(reply))))
		ids := make([]int32, rng.IntN(most+1))
		for i := range ids {
			ids[i] = rng.Int32N(61)
		}
		return ids
	},
	"hostile: always more than asked": func(at int, reply []int32, most int) []int32 { return ahead(at, reply, 3*most+40) },
	"hostile: the end token": func(at int, _ []int32, most int) []int32 {
		return slices.Repeat([]int32{7}, most)
	},
}

// ahead is the next n ids of reply, then 0.
func ahead(at int, reply []int32, n int) []int32 {
	ids := make([]int32, n)
	copy(ids, reply[min(at, len(reply)):])
	return ids
}

// oracleOf says what each prompt is replied, for a scripted drafter.
func oracleOf(rs []*engine.Request, plain map[string]engine.Result) map[string][]int32 {
	oracle := make(map[string][]int32)
	for _, r := range rs {
		oracle[fmt.Sprint(r.Prompt)] = plain[fmt.Sprintf("%s/%d", r.Key, r.Sample)].Tokens
	}
	return oracle
}

func TestNoDrafterChangesAToken(t *testing.T) {
	for _, s := range samplings {
		rs := requests(25, s.Sampling)
		plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 512, Context: 512}), rs)
		for name, guess := range scripts {
			for _, depth := range []engine.Depth{1, 4, 9, 31, engine.Auto} {
				if testing.Short() && depth != 4 && depth != engine.Auto {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", s.name, name, depth), func(t *testing.T) {
					for _, lanes := range []int{1, 5} {
						d := &scripted{t: t, oracle: oracleOf(rs, plain), guess: guess, lanes: map[int]*scriptedLane{}}
						e := newEngine(t, small, engine.Config{
							Lanes: lanes, Pages: 2 * lanes, Chunk: 50, Context: 512, Drafter: d, Depth: depth,
						})
						if diff := cmp.Diff(plain, run(t, e, rs)); diff != "" {
							t.Errorf("%d lanes (-plain +drafted):\n%s", lanes, diff)
						}
						if len(d.lanes) > 0 {
							t.Errorf("%d lanes were not released", len(d.lanes))
						}
					}
				})
			}
		}
	}
}

// scriptOf is a scripted drafter.
func scriptOf(t testing.TB, name string, oracle map[string][]int32) *scripted {
	return &scripted{t: t, oracle: oracle, guess: scripts[name], lanes: map[int]*scriptedLane{}}
}

func TestTwoDraftersTakeTurnsAndChangeNothing(t *testing.T) {
	rs := requests(25, engine.Sampling{Seed: 6, Temperature: 1})
	plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 512, Context: 512}), rs)
	oracle := oracleOf(rs, plain)
	for _, depth := range []engine.Depth{3, engine.Auto} {
		quick, slow := scriptOf(t, "random", oracle), scriptOf(t, "right", oracle)
		e := newEngine(t, small, engine.Config{
			Lanes: 5, Pages: 10, Chunk: 50, Context: 512, Quick: quick, Drafter: slow, Depth: depth,
		})
		if diff := cmp.Diff(plain, run(t, e, rs)); diff != "" {
			t.Errorf("%s (-plain +drafted):\n%s", depth, diff)
		}
		if s := e.Stats(); depth == 3 && (s.Drafted == 0 || s.Asked == 0 || s.Asked == s.Rounds) {
			t.Errorf("%s: one of two drafters had no turn: %+v", depth, s)
		}
	}
}

// What Quick guesses, Drafter need not: it is a pass of a model.
func TestSlowDrafterIsSparedWhereQuickGuesses(t *testing.T) {
	rs := requests(10, engine.Sampling{})
	plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 512, Context: 512}), rs)
	slow := scriptOf(t, "right", oracleOf(rs, plain))
	slow.guess = func(at int, reply []int32, most int) []int32 {
		t.Errorf("asked at %d of %d though Quick always guesses", at, len(reply))
		return nil
	}
	e := newEngine(t, small, engine.Config{
		Lanes: 2, Pages: 4, Chunk: 50, Context: 512, Quick: scriptOf(t, "wrong", slow.oracle), Drafter: slow, Depth: 2,
	})
	run(t, e, rs)
}

func TestRightGuessesSaveRounds(t *testing.T) {
	rs := requests(1, engine.Sampling{Seed: 1, Temperature: 1, IgnoreEOS: true})
	rs[0].MaxTokens = 100
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 50, Context: 256})
	plain := run(t, e, rs)
	if got := e.Stats().Rounds; got != 100 {
		t.Errorf("%d plain rounds, want 100", got)
	}
	d := scriptOf(t, "right", oracleOf(rs, plain))
	e = newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 50, Context: 256, Drafter: d, Depth: 4})
	run(t, e, rs)
	if s := e.Stats(); s.Rounds != 20 || s.Drafted != 80 || s.Accepted != 80 || s.Tokens != 100 {
		t.Errorf("right guesses at depth 4: %+v, want 20 rounds and 80 of 80 kept", s)
	}
}

func TestGuessesAreCountedByDepth(t *testing.T) {
	rs := requests(1, engine.Sampling{Seed: 1, Temperature: 1, IgnoreEOS: true})
	rs[0].MaxTokens = 90
	plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 50, Context: 256}), rs)
	d := scriptOf(t, "right", oracleOf(rs, plain))
	d.guess = func(at int, reply []int32, _ int) []int32 { // two right ones, then a wrong one
		ids := ahead(at, reply, 4)
		ids[2] = (ids[2] + 1) % 61
		return ids
	}
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 50, Context: 256, Drafter: d, Depth: 4})
	run(t, e, rs)
	s := e.Stats()
	if got := s.Kept[:4]; s.Rounds != 30 || !slices.Equal(got, []int64{30, 30, 0, 0}) {
		t.Errorf("%d rounds kept %d by depth, want 30 rounds and 30, 30, 0, 0", s.Rounds, got)
	}
	var guessed int64
	for depth, n := range s.Guessed {
		guessed += n
		if depth < 2 && n != 30 || depth > 3 && n != 0 { // the last round has no room for more than two
			t.Errorf("%d guesses at depth %d", n, depth)
		}
	}
	if guessed != s.Drafted {
		t.Errorf("%d guesses by depth, %d in all", guessed, s.Drafted)
	}
}

func TestCopyDraftsKeepRepliesAndSaveRounds(t *testing.T) {
	m := small
	m.Order = 2 // the text repeats before long
	rs := requests(12, engine.Sampling{IgnoreEOS: true})
	for _, r := range rs {
		r.MaxTokens = 150
	}
	e := newEngine(t, m, engine.Config{Lanes: 4, Pages: 8, Chunk: 64, Context: 512})
	plain := run(t, e, rs)
	c := newEngine(t, m, engine.Config{Lanes: 4, Pages: 8, Chunk: 64, Context: 512, Quick: &draft.Copy{}, Depth: 8})
	if diff := cmp.Diff(plain, run(t, c, rs)); diff != "" {
		t.Errorf("(-plain +copied):\n%s", diff)
	}
	if p, d := e.Stats(), c.Stats(); d.Rounds*3 > p.Rounds*2 {
		t.Errorf("text that repeats: %d rounds with copies, %d without (%+v)", d.Rounds, p.Rounds, d)
	}
}

func TestDraftingOffNeverReachesTheDrafter(t *testing.T) {
	d := &watching{scripted: scripted{t: t, lanes: map[int]*scriptedLane{}}} // its maps are nil: a call would panic
	e := newEngine(t, small, engine.Config{Lanes: 2, Pages: 4, Chunk: 64, Context: 512, Drafter: d, Depth: 0})
	run(t, e, requests(5, engine.Sampling{}))
	if s := e.Stats(); d.calls != 0 || s.Drafted != 0 || s.Draft != 0 {
		t.Errorf("%d calls of the drafter, %+v", d.calls, s)
	}
}

// watching is a scripted drafter that keeps what it sees of the target, by lane and position.
type watching struct {
	scripted
	seen map[int]map[int32]int32
	ids  map[int][]int32 // prompt and committed
}

func (d *watching) Taps() []int { return []int{0, 2} }

func (d *watching) Watch(p backend.Pass, taps backend.Buffer, r backend.Rows) error {
	rows, cols := taps.Shape()
	if rows != len(r.Pos) || cols != 2 {
		d.t.Errorf("taps [%d, %d] of %d rows", rows, cols, len(r.Pos))
	}
	got := make([]float32, rows*cols)
	p.Read(got, taps)
	for i, lane := range r.Lane {
		if d.seen[int(lane)] == nil {
			d.t.Errorf("taps of lane %d, which is not open", lane)
			continue
		}
		d.seen[int(lane)][r.Pos[i]] = int32(got[cols*i])
	}
	return nil
}

// Open of a made text is the engine's warm-up.
func (d *watching) Open(lane int, prompt []int32) {
	if _, ok := d.oracle[fmt.Sprint(prompt)]; !ok {
		d.oracle[fmt.Sprint(prompt)] = nil
	}
	d.scripted.Open(lane, prompt)
	d.seen[lane] = map[int32]int32{}
	d.ids[lane] = slices.Clone(prompt)
}

// Committed holds that every fed token was seen, where it stands.
func (d *watching) Committed(lane int, ids []int32) {
	d.scripted.Committed(lane, ids)
	d.ids[lane] = append(d.ids[lane], ids...)
	for pos, id := range d.ids[lane][:len(d.ids[lane])-1] {
		if got, ok := d.seen[lane][int32(pos)]; !ok || got != id {
			d.t.Errorf("lane %d: position %d was seen as %d (%v), it is %d", lane, pos, got, ok, id)
		}
	}
}

func TestWatcherSeesEveryRowOfTheTarget(t *testing.T) {
	for _, depth := range []engine.Depth{4, engine.Auto} {
		rs := requests(20, engine.Sampling{})
		plain := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 512, Context: 512}), rs)
		d := &watching{
			scripted: *scriptOf(t, "partly right", oracleOf(rs, plain)),
			seen:     map[int]map[int32]int32{}, ids: map[int][]int32{},
		}
		e := newEngine(t, small, engine.Config{Lanes: 3, Pages: 6, Chunk: 40, Context: 512, Drafter: d, Depth: depth})
		if diff := cmp.Diff(plain, run(t, e, rs)); diff != "" {
			t.Errorf("%s (-plain +watched):\n%s", depth, diff)
		}
	}
}

// failing guesses something that is no token, or fails itself.
type failing struct {
	draft.Copy
	id  int32
	err error
}

func (f *failing) Propose(_ context.Context, asks []draft.Ask) error {
	for i := range asks {
		asks[i].IDs = append(asks[i].IDs, 1, f.id)
	}
	return f.err
}

func TestFailingDraftsEndTheRunBeforeACommit(t *testing.T) {
	broken := fmt.Errorf("markov head: %w", draft.ErrNonfinite)
	for _, f := range []*failing{{id: 61}, {id: -1}, {id: 1 << 30}, {err: broken}} {
		cfg := engine.Config{Lanes: 2, Pages: 2, Chunk: 8, Context: 64, Depth: 4}
		if cfg.Drafter = f; f.id == -1 {
			cfg.Quick, cfg.Drafter = f, nil
		}
		e := newEngine(t, small, cfg)
		for _, r := range requests(2, engine.Sampling{}) {
			r.Prompt, r.MaxTokens = prompt(1, 5), 20
			if err := e.Admit(r); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Step(context.Background()); !errors.Is(err, draft.ErrNonfinite) {
			t.Errorf("id %d, %v: got %v, want ErrNonfinite", f.id, f.err, err)
		}
		if s := e.Stats(); s.Tokens != 0 || s.Rounds != 0 {
			t.Errorf("id %d: committed before the failure: %+v", f.id, s)
		}
	}
}

// Any schedule of admissions and steps, with any drafter, gives the plain replies, and
// every lane and page comes back.
func TestAnyScheduleGivesThePlainReplies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := enginetest.Model{Vocab: 61, Context: 2048, EOS: []int32{7, 30}, Order: rapid.IntRange(0, 3).Draw(rt, "order")}
		rs := drawRequests(rt)
		ample := engine.Config{Lanes: 1, Pages: 8, Chunk: 4096, Context: rapid.IntRange(400, 2048).Draw(rt, "context")}
		plain := run(t, newEngine(t, m, ample), rs)

		lanes := rapid.IntRange(1, 9).Draw(rt, "lanes")
		cfg := engine.Config{
			Lanes: lanes, Pages: 3 + rapid.IntRange(0, 2*lanes).Draw(rt, "pages"),
			Chunk: rapid.IntRange(1, 300).Draw(rt, "chunk"), Context: ample.Context,
			Depth: engine.Depth(rapid.IntRange(-1, 12).Draw(rt, "depth")),
		}
		name := rapid.SampledFrom([]string{"copy", "silent", "right", "wrong", "partly right", "random", "hostile: always more than asked"}).Draw(rt, "drafter")
		if name != "copy" {
			cfg.Drafter = scriptOf(t, name, oracleOf(rs, plain))
		}
		if name != "copy" && rapid.Bool().Draw(rt, "watching") {
			cfg.Drafter = &watching{scripted: *scriptOf(t, name, oracleOf(rs, plain)), seen: map[int]map[int32]int32{}, ids: map[int][]int32{}}
		}
		if name == "copy" || rapid.Bool().Draw(rt, "copies first") {
			cfg.Quick = &draft.Copy{}
		}
		e := newEngine(t, m, cfg)
		got := runShuffled(rt, e, rs)
		if diff := cmp.Diff(plain, got); diff != "" {
			rt.Fatalf("(-plain +%s):\n%s", name, diff)
		}
		if e.Active() != 0 || !e.Room(&engine.Request{Prompt: []int32{1}, MaxTokens: min(cfg.Pages*256, cfg.Context-1)}) {
			rt.Fatal("not every lane and page came back")
		}
	})
}

// drawRequests makes rows whose prompts differ, so that a drafter can tell them apart.
func drawRequests(rt *rapid.T) []*engine.Request {
	var rs []*engine.Request
	for i := range rapid.IntRange(1, 14).Draw(rt, "rows") {
		s := rapid.SampledFrom(samplings).Draw(rt, "sampling").Sampling
		s.Seed = rapid.Uint64().Draw(rt, "seed")
		p := append(prompt(i, rapid.IntRange(0, 330).Draw(rt, "prompt")), int32(i))
		rs = append(rs, &engine.Request{
			Key: fmt.Sprint(i), Sample: i % 3, Prompt: p, MaxTokens: rapid.IntRange(1, 120).Draw(rt, "tokens"), Sampling: s,
		})
	}
	return rs
}

// runShuffled admits the rows in any order, now and then, between steps.
func runShuffled(rt *rapid.T, e *engine.Engine, rs []*engine.Request) map[string]engine.Result {
	rs = rapid.Permutation(rs).Draw(rt, "order of rows")
	got := make(map[string]engine.Result)
	for len(rs) > 0 || e.Active() > 0 {
		for len(rs) > 0 && e.Room(rs[0]) && (e.Active() == 0 || rapid.Bool().Draw(rt, "admit")) {
			if err := e.Admit(rs[0]); err != nil {
				rt.Fatal(err)
			}
			rs = rs[1:]
		}
		if e.Active() == 0 {
			rt.Fatalf("nothing runs and there is no room for %q", rs[0].Key)
		}
		done, err := e.Step(context.Background())
		if err != nil {
			rt.Fatal(err)
		}
		for _, d := range done {
			key := fmt.Sprintf("%s/%d", d.Request.Key, d.Request.Sample)
			d.Request = nil
			got[key] = d
		}
	}
	return got
}
