package engine

import (
	"math"
	"testing"
	"time"
)

// Long contexts make every round longer; drafted ones are compared with plain ones of the same length.
func TestRoundsAreComparedWithPlainOnesAsFarOn(t *testing.T) {
	const ms = time.Millisecond
	g := newLedger(1, 16, 40)
	for _, r := range []round{
		{lanes: 1, context: 10, rows: 1, tokens: 1, rest: ms},
		{lanes: 1, context: 10, rows: 1, tokens: 1, rest: ms},
		{lanes: 1, context: 10, rows: 5, guesses: 4, tokens: 1, rest: 3 * ms},
		{lanes: 1, context: 1000, rows: 1, tokens: 1, rest: 2 * ms},
	} {
		g.settle(&r, nil)
	}
	far := round{lanes: 1, context: 1000}
	if g.drafts(&far) {
		t.Error("one plain round with a long context is enough to draft by")
	}
	g.settle(&round{lanes: 1, context: 1000, rows: 1, tokens: 1, rest: 2 * ms}, nil)
	near := round{lanes: 1, context: 100}
	for name, got := range map[string][2]float64{
		"a plain round":           {g.reference(&near).typical, 0.001},
		"a plain round, far on":   {g.reference(&far).typical, 0.002},
		"four guesses":            {g.more(&near, 4), 0.002},
		"four guesses, far on":    {g.more(&far, 4), 0.004},
		"where nothing was timed": {g.more(&round{lanes: 1, context: 3000}, 4), 0.002},
	} {
		if math.Abs(got[0]-got[1]) > 1e-9 {
			t.Errorf("%s takes %v, want %v", name, got[0], got[1])
		}
	}
	before := g.balance
	g.settle(&round{lanes: 1, context: 1000, rows: 5, guesses: 4, tokens: 3, rest: 4 * ms}, drew(3))
	if got, want := g.balance-before, 3*0.002*(1-safety)-0.004; math.Abs(got-want) > 1e-9 {
		t.Errorf("a drafted round far on moved the account by %v, want %v", got, want)
	}
}

// What lands in greedy rows is not believed of sampled ones.
func TestClassesLearnApart(t *testing.T) {
	g := newLedger(1, 16, 40)
	greedy, sampled := &lane{}, &lane{}
	sampled.voice.Temperature = 0.8
	for range 50 {
		for _, l := range []*lane{greedy, sampled} {
			l.ids = []int32{1, 2}
			l.trial.begin(1, &span{lane: l, guess: []int32{2 + int32(l.class())}, chance: []float32{0.9}})
			g.settle(&round{rows: 1}, []span{{lane: l}})
		}
	}
	spans := []span{{lane: greedy, guess: []int32{1}, chance: []float32{0.9}, weight: 1}, {lane: sampled, guess: []int32{1}, chance: []float32{0.9}, weight: 1}}
	g.rank(spans)
	if a, b := g.pick[0], g.pick[1]; a.span != 0 || a.worth < 0.9 || b.worth > 0.1 {
		t.Errorf("%+v of greedy, %+v of sampled rows", a, b)
	}
}

func TestStatedChancesAreBinnedByTheirOdds(t *testing.T) {
	for _, c := range []struct {
		said float64
		bin  int
	}{{0, 0}, {0.03, 0}, {0.19, 1}, {0.2, 2}, {0.3, 2}, {0.5, 4}, {0.8, 6}, {0.88, 6}, {0.9, 7}, {64.0 / 65, 10}, {0.9995, 11}, {1, 11}} {
		if got := binOf(c.said); got != c.bin {
			t.Errorf("%v is in bin %d, want %d", c.said, got, c.bin)
		}
	}
}

// A lane that had no use for guesses is asked for few, but now and then for all.
func TestQuickIsAskedForWhatRoundsHaveUseFor(t *testing.T) {
	g := newLedger(1, 16, 40)
	s := []span{{lane: &lane{}}}
	all := 0
	for range 4 * lookEvery {
		if g.quick(nil, s, 15); s[0].want == 15 {
			all++
		} else if s[0].want != slack {
			t.Fatalf("asked for %d", s[0].want)
		}
	}
	s[0].lane.taken = 5
	if g.quick(nil, s, 15); all != 4 || s[0].want != 12 {
		t.Errorf("asked %d times for all, and for %d after five were verified", all, s[0].want)
	}
}
