package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// TestLanesThatEndApartAreNotALoss holds that the whole of a run in which no request waits, the last rounds with few
// lanes too, takes no longer than plain decoding where only half of the lanes can be guessed, and so end long before the others.
func TestLanesThatEndApartAreNotALoss(t *testing.T) {
	const lanes = 8
	rs := long(lanes)
	whole := func(cost func(int) time.Duration, d *noisy) (map[string]engine.Result, time.Duration) {
		clock := &enginetest.Clock{}
		cfg := engine.Config{Lanes: lanes + 1, Pages: 4 * lanes, Chunk: 512, Context: 1024} // one is free, so nothing waits
		if d != nil {
			d.clock, d.rng, d.lanes = clock, rand.New(rand.NewPCG(1, 2)), map[int]*scriptedLane{}
			cfg.Depth, cfg.Quick = engine.Auto, d
		}
		e, err := engine.NewAt(enginetest.Device{Clock: clock, Cost: cost}, enginetest.Model{Vocab: 61, Context: 1024, Trust: true}, cfg, clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		start := clock.Now()
		return run(t, e, rs), clock.Now().Sub(start)
	}
	for name, cost := range devices {
		plain, took := whole(cost, nil)
		for _, all := range []bool{false, true} {
			d := &noisy{oracle: oracleOf(rs, plain), says: honest, right: always(0.9)}
			for i, r := range rs {
				if i%2 == 0 && !all {
					delete(d.oracle, fmt.Sprint(r.Prompt)) // no guesses
				}
			}
			got, drafted := whole(cost, d)
			if diff := cmp.Diff(plain, got); diff != "" {
				t.Fatalf("%s, all %t (-plain +drafted):\n%s", name, all, diff)
			}
			ratio, least := float64(took)/float64(drafted), 0.995
			if all && name != "arithmetic" {
				least = 1.4
			}
			t.Logf("%-10s guesses for all %-5t %.3f of plain", name, all, ratio)
			if ratio < least {
				t.Errorf("%s, guesses for all %t: %.3f of the plain speed, want %v", name, all, ratio, least)
			}
		}
	}
}
