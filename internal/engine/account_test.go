package engine

import (
	"math"
	"slices"
	"testing"
	"time"
)

// drew is the spans of a round that brought n tokens.
func drew(n int) []span { return []span{{lane: &lane{}, drawn: n, weight: 1}} }

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
		{"guesses that were looked for in vain", round{lanes: 4, rows: 4, tokens: 4, rest: 10 * ms, looked: ms}, -0.001},
		{"a drafted round", round{lanes: 4, rows: 8, guesses: 4, tokens: 8, asked: 4, rest: 12 * ms, draft: 3 * ms}, 0.02*(1-safety) - 0.015},
		{"a round with a prompt", round{lanes: 4, prompt: 50, rows: 54, tokens: 4, rest: 80 * ms}, 0},
		{"a gain past the most that is kept", round{lanes: 4, rows: 64, guesses: 60, tokens: 800, rest: 12 * ms}, mostSeconds + 0.002 - 0.02*(1-safety) + 0.015},
	} {
		before := g.balance
		g.settle(&c.r, drew(c.r.tokens))
		if got := g.balance - before; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: the account moved by %v, want %v", c.name, got, c.want)
		}
	}
	if g.anew(); g.balance != 0 || g.elapsed != 0 {
		t.Errorf("another job begins with %v seconds of %v", g.balance, g.elapsed)
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
		g.settle(&r, drew(r.tokens))
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

// holdRig is a hold of up to eight lanes, of whose guesses three in four land.
type holdRig struct {
	*testing.T
	hold
	landed []float64
}

const holdPrice = 100.0 // tokens a second

func newHoldRig(t *testing.T) *holdRig {
	landed, all := []float64{0}, 1.0
	for d := range autoDepth {
		all *= 0.75
		landed = append(landed, landed[d]+all)
	}
	return &holdRig{t, newHold(8), landed}
}

func (h *holdRig) ask(what string, n int, spare float64, lanes, depth int) {
	h.Helper()
	if k, d := h.either(n, spare); k != lanes || k > 0 && d != depth {
		h.Errorf("%s: asked %d lanes for %d guesses, want %d and %d", what, k, d, lanes, depth)
	}
}

// either is whom to ask: now, or behind the round if not.
func (h *holdRig) either(n int, spare float64) (lanes, depth int) {
	if k, d := h.plan(n, h.landed, holdPrice, spare); k > 0 {
		return k, d
	}
	return h.shadow(n, 0.01, spare)
}

// offer says that a round took seconds, and that a share of the guesses that landed was worth its rows.
func (h *holdRig) offer(lanes, depth int, worth, seconds float64) {
	expected := float64(lanes) * h.landed[depth]
	h.offered(wish{lanes, depth, lanes * depth}, 8, worth*expected, expected, seconds, h.landed, holdPrice)
}

func TestHoldAsksWhereItPaysAndTriesElsewhere(t *testing.T) {
	const ample = 1.0
	h := newHoldRig(t)
	h.ask("nothing known and nothing to spare", 8, 0.005, 0, 0)
	h.ask("nothing known", 8, ample, 1, 2)
	h.offer(1, 2, 0, 0.02)
	var tried []int
	for range 1000 {
		if n, d := h.either(8, ample); n > 0 {
			tried = append(tried, n)
			h.offer(n, d, 0, 0.02)
		}
	}
	if want := []int{2, 4, 8, 1, 1, 1, 1}; !slices.Equal(tried, want) {
		t.Errorf("a drafter worth nothing was tried on %v lanes in 1000 rounds, want %v", tried, want)
	}
	for range 20 {
		h.offer(8, 2, 1, 0.02) // ten tokens, for the price of two
	}
	if n, _ := h.plan(8, h.landed, holdPrice, ample); n != 8 {
		t.Errorf("eight lanes share one cost and gain: asked %d", n)
	}
	h.ask("its time is more than there is to spare", 8, 0.001, 0, 0)
}

// The depth is where a further guess lands too rarely for its time, however deep lanes could go.
func TestHoldAsksAsDeepAsPays(t *testing.T) {
	h := newHoldRig(t)
	cost := func(w wish) float64 { return 0.001 + 0.004*float64(w.depth) } // 0.4 tokens for a link
	for range 200 {
		for _, d := range []int{1, 2, 4, 6} {
			h.offer(1, d, 1, cost(wish{1, d, d}))
		}
	}
	for _, d := range []int{1, 3, 6, 9} {
		if got, want := h.times.at(wish{1, d, d}), cost(wish{1, d, d}); math.Abs(got-want) > want/10 {
			t.Errorf("%d guesses are thought to take %v, want %v", d, got, want)
		}
	}
	h.ask("0.75 to the fourth is less than 0.4", 1, 1, 1, 3)
}

func TestDrafterThatKeepsFailingIsParkedAndTriedMoreAndMoreRarely(t *testing.T) {
	h := newHoldRig(t)
	known, shown, parked := true, 0, 0
	for range 20000 {
		if !known && h.watch() {
			known = true
			shown++
		}
		if known {
			if n, d := h.either(1, 1); n > 0 {
				h.offer(n, d, 0, 0.02)
			}
		}
		if h.parked() {
			known = false
			parked++
		}
	}
	if shown != 6 || parked != shown+1 {
		t.Errorf("in 20000 rounds it was parked %d times and shown %d lanes, want 7 and 6", parked, shown)
	}
	h.rest = 0
	if !h.watch() {
		t.Fatal("the rest is over and no lane is shown")
	}
	for range 8 {
		h.offer(1, 2, 1, 0.001)
	}
	if h.parked() || !h.watch() || !h.watch() {
		t.Error("it pays now, and does not get its lanes")
	}
}

func TestTrialScoresUpToTheFirstMiss(t *testing.T) {
	var g landing
	var tr trial
	tr.begin(3, &span{lane: &lane{}, guess: []int32{7, 8, 9, 10}, chance: []float32{0.9, 0.9, 0.9}, slow: true})
	tr.begin(3, &span{lane: &lane{}, guess: []int32{1}}) // too early: the first has no answer
	tr.answer([]int32{1, 2, 3}, &g)
	tr.answer([]int32{1, 2, 3, 7}, &g)
	if c := g.slow[0][7]; c != (cell{1, 1}) {
		t.Errorf("first guess: %+v, want one hit", c)
	}
	tr.answer([]int32{1, 2, 3, 7, 8, 5, 10}, &g)
	if a, b, c := g.slow[1][7], g.slow[2][7], g.slow[3][4]; a != (cell{1, 1}) || b != (cell{0, 1}) || c != (cell{}) {
		t.Errorf("later guesses: %+v, %+v, %+v, want a hit, a miss, no answer", a, b, c)
	}
	tr.begin(7, &span{lane: &lane{}, guess: []int32{4}})
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
	l.trial.begin(9, &span{lane: l, guess: []int32{1, 2}})
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
		g.landing[0].saw(false, 0, 0.9, true)
		g.landing[0].saw(true, 0, 0.9, true)
	}
	spans := []span{{lane: &lane{}, guess: []int32{1}, chance: []float32{0.9}}, {lane: &lane{known: true}, want: 1}}
	g.cut(&round{lanes: 2, asked: 1, draft: time.Millisecond}, spans)
	if len(spans[0].guess) != 1 || g.hold.worth.v != 0 {
		t.Errorf("%d copies verified, and the drafter that was silent is worth %v tokens", len(spans[0].guess), g.hold.worth.v)
	}
	spans[1].guess, spans[1].chance, spans[1].slow = []int32{2}, []float32{0.9}, true
	g.cut(&round{lanes: 2, asked: 1, draft: time.Millisecond}, spans)
	if g.hold.worth.v <= 0 {
		t.Errorf("the drafter's own guess is worth %v tokens", g.hold.worth.v)
	}
}
