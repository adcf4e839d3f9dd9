package engine

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestAccountCreditsTokensAndDebitsTime(t *testing.T) {
	const ms = time.Millisecond
	g := newLedger(4, 64, 100)
	plain := round{lanes: 4, rows: 4, tokens: 4, rest: 10 * ms}
	g.settle(&plain, nil)
	g.settle(&plain, nil)
	for _, c := range []struct {
		name string
		r    round
		want float64 // change of the account, seconds
	}{
		{"a plain round", plain, 0},
		{"a drafter that was asked in vain", round{lanes: 4, rows: 4, tokens: 4, asked: 4, rest: 10 * ms, draft: ms}, -0.001},
		{"a drafted round", round{lanes: 4, rows: 8, guesses: 4, tokens: 8, asked: 4, rest: 12 * ms, draft: 3 * ms}, 0.02*(1-safety) - 0.015},
		{"a round with a prompt", round{lanes: 4, prompt: 50, rows: 54, tokens: 4, rest: 80 * ms}, 0},
		{"a gain past the most that is kept", round{lanes: 4, rows: 64, guesses: 60, tokens: 800, rest: 12 * ms}, mostSeconds + 0.001 - 0.02*(1-safety) + 0.015},
	} {
		before := g.balance
		g.settle(&c.r, nil)
		if got := g.balance - before; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: the account moved by %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPlainRoundsStayInTheMix(t *testing.T) {
	g := newLedger(2, 32, 40)
	r := round{lanes: 2, rows: 2, tokens: 2, rest: time.Millisecond}
	drafted := 0
	for range 1000 {
		r.guesses, r.tokens = 0, 2
		if g.open(&r) {
			r.guesses, r.tokens = 1, 3
			drafted++
		}
		g.settle(&r, nil)
	}
	if want := 1000 - 1000/plainEvery; drafted < want-4 || drafted > want {
		t.Errorf("%d of 1000 rounds drafted, want about %d", drafted, want)
	}
}

func TestCurveDrawsLinesBetweenWhatItMeasured(t *testing.T) {
	c := newCurve(100)
	if got := c.at(5); got != 0 || c.known {
		t.Errorf("%v before anything was measured", got)
	}
	at := func(name string, n int, want float64) {
		t.Helper()
		if got := c.at(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %d take %v, want %v", name, n, got, want)
		}
	}
	c.observe(4, 8)
	at("one point", 4, 8)
	at("below it", 2, 8)
	at("beyond it, half of proportional", 8, 12)
	c.observe(100, 56)
	at("up to the next", 52, 32)
	c.observe(8, 20)
	at("between", 6, 14)
	if got := c.observe(8, 1e6); got != 60 {
		t.Errorf("an outlier counts as %v, want three times 20", got)
	}
	at("after it", 8, 40)
	at("past the end", 1000, 56)
}

func TestCurveDoesNotTakeAStepForASlope(t *testing.T) {
	c := newCurve(100)
	c.observe(16, 16)
	c.observe(17, 25)
	if got, want := c.at(27), 25+10*guessedSlope*25/17; math.Abs(got-want) > 1e-12 {
		t.Errorf("after a step, 27 take %v, want %v", got, want)
	}
	c.observe(5, 13)
	if got := c.at(27); got != 35 {
		t.Errorf("over twelve counts it went up by one each: 27 take %v, want 35", got)
	}
}

func TestAPromptAmongDecodingRowsDoesNotCountAsOne(t *testing.T) {
	g := newLedger(4, 64, 200)
	g.settle(&round{lanes: 2, prompt: 10, rows: 12, tokens: 2, rest: time.Second}, nil)
	if g.times.known {
		t.Error("12 rows with a prompt were taken for rows that draw")
	}
	g.settle(&round{lanes: 2, prompt: 98, rows: 100, tokens: 2, rest: time.Second}, nil)
	if got := g.times.at(100); got != 1 {
		t.Errorf("100 rows, beyond all that draw, take %v, want 1", got)
	}
}

func TestHoldAsksWhereItPaysAndTriesElsewhere(t *testing.T) {
	const plain, price, ample = 0.01, 100.0, 1.0
	h := hold{times: newCurve(8)}
	if n := h.lanes(8, plain, price, plain/2); n != 0 {
		t.Errorf("nothing known and nothing to spare: asked %d lanes", n)
	}
	if n := h.lanes(8, plain, price, ample); n != 1 {
		t.Errorf("nothing known: asked %d lanes, want 1", n)
	}
	h.offered(1, 0, 0.02, price) // worth nothing
	var tried []int
	for range 1000 {
		if n := h.lanes(8, plain, price, ample); n > 0 {
			tried = append(tried, n)
			h.offered(n, 0, 0.02, price)
		}
	}
	if want := []int{2, 4, 8, 1, 1, 1, 1}; !slices.Equal(tried, want) {
		t.Errorf("a drafter worth nothing was tried on %v lanes in 1000 rounds, want %v", tried, want)
	}
	for range 20 {
		h.offered(8, 8, 0.02, price) // a token a lane, for the price of two in all
	}
	if n := h.lanes(8, plain, price, ample); n != 8 {
		t.Errorf("eight lanes share one cost and gain: asked %d", n)
	}
	if n := h.lanes(8, plain, price, 0.001); n != 0 {
		t.Errorf("its time is more than there is to spare: asked %d lanes", n)
	}
	if n := h.lanes(1, plain, price, ample); n != 0 {
		t.Errorf("one lane gains a token for the price of two: asked %d lanes", n)
	}
}

func TestTrialScoresUpToTheFirstMiss(t *testing.T) {
	var g landing
	var tr trial
	tr.begin(3, &span{guess: []int32{7, 8, 9, 10}, chance: []float32{0.9, 0.9, 0.9}, slow: true})
	tr.begin(3, &span{guess: []int32{1}}) // too early: the first has no answer
	tr.answer([]int32{1, 2, 3}, &g)
	tr.answer([]int32{1, 2, 3, 7}, &g)
	if c := g.slow[0][7]; c != (cell{1, 1}) {
		t.Errorf("first guess: %+v, want one hit", c)
	}
	tr.answer([]int32{1, 2, 3, 7, 8, 5, 10}, &g)
	if a, b, c := g.slow[1][7], g.slow[2][7], g.slow[3][4]; a != (cell{1, 1}) || b != (cell{0, 1}) || c != (cell{}) {
		t.Errorf("later guesses: %+v, %+v, %+v, want a hit, a miss, no answer", a, b, c)
	}
	tr.begin(7, &span{guess: []int32{4}})
	tr.answer([]int32{1, 2, 3, 7, 8, 5, 10, 4}, &g)
	if c := g.quick[0][4]; c != (cell{1, 1}) {
		t.Errorf("next trial, of unsaid chance: %+v, want one hit", c)
	}
	if got := chanceOf([]float32{float32(math.NaN()), -1, 7}, 0) + chanceOf([]float32{0, -1}, 1) + chanceOf([]float32{7}, 0); got != 1 {
		t.Errorf("NaN, -1 and 7 as chances come to %v, want 0 + 0 + 1", got)
	}
}

func TestNextReplyOfALaneStartsWithoutATrial(t *testing.T) {
	l := &lane{}
	l.trial.begin(9, &span{guess: []int32{1, 2}})
	l.open(&Request{Prompt: []int32{1}}, 20, nil)
	var g landing
	l.trial.answer(make([]int32, 20), &g)
	if g != (landing{}) {
		t.Error("guesses of the reply before were scored against this one")
	}
}

func TestDearDrafterIsNotCreditedWithCopies(t *testing.T) {
	g := newLedger(2, 32, 40)
	r := round{lanes: 2, rows: 2, tokens: 2, rest: 10 * time.Millisecond}
	g.settle(&r, nil)
	g.settle(&r, nil)
	for range 50 {
		g.landing.saw(false, 0, 0.9, true)
		g.landing.saw(true, 0, 0.9, true)
	}
	spans := []span{{lane: &lane{}, guess: []int32{1}, chance: []float32{0.9}}, {lane: &lane{}}}
	g.cut(&round{lanes: 2, asked: 1, draft: time.Millisecond}, spans)
	if len(spans[0].guess) != 1 || g.hold.gain.v != 0 {
		t.Errorf("%d copies verified, and the drafter that was silent is worth %v tokens", len(spans[0].guess), g.hold.gain.v)
	}
	spans[1].guess, spans[1].chance, spans[1].slow = []int32{2}, []float32{0.9}, true
	g.cut(&round{lanes: 2, asked: 1, draft: time.Millisecond}, spans)
	if g.hold.gain.v <= 0 {
		t.Errorf("the drafter's own guess is worth %v tokens", g.hold.gain.v)
	}
}
