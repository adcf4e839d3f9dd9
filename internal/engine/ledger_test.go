package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// noisy is a drafter whose guesses come true with some probability each, and whose time is
// that of the test's clock.
type noisy struct {
	oracle map[string][]int32
	right  func(at int) float64 // the probability, by place in the reply
	says   func(right float64) float32
	cost   time.Duration // of a round
	clock  *enginetest.Clock
	rng    *rand.Rand
	lanes  map[int]*scriptedLane
}

func (d *noisy) Open(lane int, prompt []int32) {
	d.lanes[lane] = &scriptedLane{reply: d.oracle[fmt.Sprint(prompt)]}
}
func (d *noisy) Committed(lane int, ids []int32) { d.lanes[lane].at += len(ids) }
func (d *noisy) Release(lane int)                { delete(d.lanes, lane) }

func (d *noisy) Propose(_ context.Context, asks []draft.Ask) error {
	d.clock.Pass(d.cost)
	for i := range asks {
		a := &asks[i]
		l := d.lanes[a.Lane]
		if l.reply == nil {
			continue
		}
		for j, id := range ahead(l.at, l.reply, a.Most) {
			p := d.right(l.at + j)
			if d.rng.Float64() >= p {
				id = (id + 1) % 61
			}
			a.IDs = append(a.IDs, id)
			if d.says != nil {
				a.Chance = append(a.Chance, d.says(p))
			}
		}
	}
	return nil
}

// Devices as the time of a forward by its rows.
var devices = map[string]func(rows int) time.Duration{
	// Bound by reading weights: more rows cost little.
	"weights": func(n int) time.Duration { return 5*time.Millisecond + time.Duration(n)*60*time.Microsecond },
	// The same in tiles of eight rows.
	"tiles": func(n int) time.Duration { return 4*time.Millisecond + time.Duration((n+7)/8)*900*time.Microsecond },
	// Bound by arithmetic: a row costs what a row costs.
	"arithmetic": func(n int) time.Duration {
		return 300*time.Microsecond + time.Duration(n)*time.Millisecond
	},
	// A mixture of experts: rows bring their own weights, fewer and fewer.
	"experts": func(n int) time.Duration {
		distinct := 64 * (1 - pow(1-4.0/64, n))
		return 2*time.Millisecond + time.Duration(distinct*float64(250*time.Microsecond))
	},
}

func pow(x float64, n int) float64 {
	y := 1.0
	for range n {
		y *= x
	}
	return y
}

func always(p float64) func(int) float64 { return func(int) float64 { return p } }

func honest(p float64) float32 { return float32(p) }

// timed runs rs with the drafter (nil: plain) and returns the replies and the tokens a second by the clock, up to
// the last round with all lanes: those of a plain run end together and those of a drafted one do not, so the
// rounds of the last few say nothing about either. The ledger's own promise about its account is held on the way out.
func timed(t *testing.T, lanes int, cost func(int) time.Duration, d *noisy, rs []*engine.Request) (map[string]engine.Result, float64) {
	t.Helper()
	clock := &enginetest.Clock{}
	cfg := engine.Config{Lanes: lanes, Pages: 4 * lanes, Chunk: 128, Context: 1024}
	if d != nil {
		d.clock, d.rng, d.lanes = clock, rand.New(rand.NewPCG(1, 2)), map[int]*scriptedLane{}
		cfg.Depth = engine.Auto
		if cfg.Drafter = d; d.cost == 0 {
			cfg.Quick, cfg.Drafter = d, nil
		}
	}
	longest := time.Duration(0) // of the forwards: on a noisy machine a round may take many times as long as another
	measured := func(rows int) time.Duration {
		c := cost(rows)
		if rows <= lanes*9 {
			longest = max(longest, c)
		}
		return c
	}
	e, err := engine.NewAt(enginetest.Device{Clock: clock, Cost: measured}, enginetest.Model{Vocab: 61, Context: 1024, Trust: true}, cfg, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	start := clock.Now()
	rate := 0.0
	got := run(t, e, rs, func() {
		if e.Active() == lanes {
			rate = float64(e.Stats().Tokens) / clock.Now().Sub(start).Seconds()
		}
	})
	took := clock.Now().Sub(start)
	if d != nil {
		if b := e.Balance(); b < -took/500-longest-d.cost {
			t.Errorf("account at %v after %v: below 0.2%% and a round of %v", b, took, longest)
		}
	}
	return got, rate
}

// TestASlowFirstForwardIsNotBelieved holds that guesses are tried where the first forward as wide as theirs met a busy machine.
func TestASlowFirstForwardIsNotBelieved(t *testing.T) {
	const lanes = 1
	rs := long(lanes)
	plain, rate := timed(t, lanes, devices["weights"], nil, rs)
	busy := 1
	cost := func(rows int) time.Duration {
		took := devices["weights"](rows)
		if rows > 8*lanes && busy > 0 {
			busy--
			took *= 50
		}
		return took
	}
	d := &noisy{oracle: oracleOf(rs, plain), right: always(0.9)}
	got, drafted := timed(t, lanes, cost, d, rs)
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Error(diff)
	}
	if busy != 0 || drafted < 1.5*rate {
		t.Errorf("drafting runs at %.2f of plain after a slow start", drafted/rate)
	}
}

// long are rows of 400-token replies.
func long(count int) []*engine.Request {
	rs := requests(count, engine.Sampling{Seed: 1, Temperature: 1, IgnoreEOS: true})
	for i, r := range rs {
		r.Prompt, r.MaxTokens = prompt(i, 20+i), 400
	}
	return rs
}

func TestDraftingByTheLedgerLosesAlmostNothing(t *testing.T) {
	for name, cost := range devices {
		for _, lanes := range []int{1, 4, 16} {
			if testing.Short() && lanes != 4 {
				continue
			}
			rs := long(2 * lanes)
			plain, plainRate := timed(t, lanes, cost, nil, rs)
			for _, d := range []struct {
				name string
				*noisy
			}{
				{"never right", &noisy{right: always(0), says: honest}},
				{"never right and sure", &noisy{right: always(0), says: func(float64) float32 { return 1 }}},
				{"says nothing", &noisy{right: always(0.5)}},
				{"half", &noisy{right: always(0.5), says: honest}},
				{"dear", &noisy{right: always(0.6), says: honest, cost: 4 * time.Millisecond}},
				{"dear and good", &noisy{right: always(0.9), says: honest, cost: 2 * time.Millisecond}},
				{"good", &noisy{right: always(0.9), says: honest}},
				{"good and bad in turn", &noisy{says: honest, right: func(at int) float64 { return []float64{0.95, 0.1}[at/60%2] }}},
				{"good and bad in turn, unsaid", &noisy{right: func(at int) float64 { return []float64{0.95, 0.1}[at/60%2] }}},
			} {
				d.oracle = oracleOf(rs, plain)
				got, rate := timed(t, lanes, cost, d.noisy, rs)
				if diff := cmp.Diff(plain, got); diff != "" {
					t.Fatalf("%s, %d lanes, %s (-plain +drafted):\n%s", name, lanes, d.name, diff)
				}
				ratio := rate / plainRate
				t.Logf("%-10s %2d lanes %-30s %.3f of plain", name, lanes, d.name, ratio)
				if least := leastOf(name, d.name); ratio < least {
					t.Errorf("%s, %d lanes, %s: %.3f of the plain speed, want at least %v", name, lanes, d.name, ratio, least)
				}
			}
		}
	}
}

// leastOf is the speed that a run must have, as a share of plain: where rows are cheap a good
// drafter must pay. The account allows 0.998 and a round.
func leastOf(device, drafter string) float64 {
	if drafter == "good" && device != "arithmetic" {
		return 1.6
	}
	return 0.995
}

// A machine that does other work now and then must not keep drafting from what it is worth.
func TestLedgerDraftsOnANoisyMachine(t *testing.T) {
	noise := rand.New(rand.NewPCG(3, 3))
	cost := func(rows int) time.Duration {
		d := float64(devices["weights"](rows)) * (0.9 + 0.2*noise.Float64())
		if noise.IntN(50) == 0 {
			d *= 1 + 20*noise.Float64()
		}
		return time.Duration(d)
	}
	rs := long(16)
	plain, plainRate := timed(t, 4, cost, nil, rs)
	for _, d := range []struct {
		right, least float64
	}{{0.9, 1.5}, {0, 0.95}} {
		n := &noisy{right: always(d.right), says: honest, oracle: oracleOf(rs, plain)}
		_, rate := timed(t, 4, cost, n, rs)
		ratio := rate / plainRate
		t.Logf("right %v: %.3f of plain", d.right, ratio)
		if ratio < d.least {
			t.Errorf("right %v: %.3f of the plain speed, want at least %v", d.right, ratio, d.least)
		}
	}
}

// A parked drafter that watches costs nothing: no taps, no calls, until a lane is shown to it.
func TestParkedDrafterIsOutOfTheRounds(t *testing.T) {
	clock := &enginetest.Clock{}
	rs := long(12)
	m := enginetest.Model{Vocab: 61, Context: 1024, Trust: true}
	cfg := engine.Config{Lanes: 4, Pages: 16, Chunk: 128, Context: 1024, Depth: engine.Auto}
	plain := run(t, newEngine(t, m, engine.Config{Lanes: 4, Pages: 16, Chunk: 128, Context: 1024}), rs)
	d := &watching{scripted: *scriptOf(t, "wrong", oracleOf(rs, plain)), seen: map[int]map[int32]int32{}, ids: map[int][]int32{}}
	wrong := d.guess
	d.guess = func(at int, reply []int32, most int) []int32 {
		clock.Pass(time.Millisecond)
		return wrong(at, reply, most)
	}
	cfg.Drafter = d
	e, err := engine.NewAt(enginetest.Device{Clock: clock, Cost: devices["weights"]}, m, cfg, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	quiet := 0 // rounds in a row without the drafter
	most, calls := 0, d.calls
	got := run(t, e, rs, func() {
		if quiet++; d.calls != calls {
			quiet, calls = 0, d.calls
		}
		most = max(most, quiet)
	})
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("(-plain +drafted):\n%s", diff)
	}
	s := e.Stats()
	t.Logf("%d rounds, %d watched, %d asked, %d of them in a row without the drafter", s.Rounds, s.Watched, s.Asked, most)
	if s.Asked == 0 || s.Watched*5 > s.Rounds || most < 256 {
		t.Errorf("of %d rounds %d were watched and %d asked; at most %d in a row were without the drafter", s.Rounds, s.Watched, s.Asked, most)
	}
}
