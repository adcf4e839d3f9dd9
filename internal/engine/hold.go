package engine

import "math"

// hold decides how many lanes the drafter is asked about and for how many guesses, where its own time counts.
// While nothing pays, it is asked now and then behind a round, ever more rarely and about few lanes; those guesses
// are scored on what comes, and verified in the next round if they happen to pay.
//
// A drafter that watches costs time for every row of its lanes, asked or not. One that has failed often, or whose
// next trial the account cannot bear, is parked: it forgets its lanes, and after a while, ever longer, a newly admitted lane is shown to it and tried.
type hold struct {
	times plane
	worth average // tokens that a guess which lands is worth, its row paid
	tried []bool  // by lanes asked
	wait  int     // rounds until it is asked again
	pause int     // length of the last wait
	turn  int     // counts rounds, so that few lanes asked are not always the same

	seeds int  // trials on prompts that were begun
	seed  bool // one of them has ended

	park  bool // the lanes it knows shall be forgotten
	off   bool // it knows no lanes, or one that is tried
	rest  int  // rounds until it is shown a lane
	sleep int  // length of the last rest
}

const (
	minWait   = 8
	maxWait   = 256
	parkAfter = 16  // a wait of so many rounds: the second failure in a row
	minSleep  = 256 // rounds
	maxSleep  = 1 << 14
	holdRate  = 0.5 // weight of a round in worth

	// slack is how many more guesses than were verified the last time a lane is asked for, so that its depth
	// can grow.
	slack = 2
)

func newHold(lanes int) hold { return hold{tried: make([]bool, lanes+1)} }

// rehearsed takes the times of a drafter. Those of other numbers of lanes and depths need no trial then.
func (h *hold) rehearsed(times []timing) {
	for range 32 { // until all four are met
		for _, t := range times {
			h.times.observe(t.wish, t.seconds)
		}
	}
	for k := range h.tried {
		h.tried[k] = true
	}
}

// plan is how many of n lanes to ask now and how deep, when a second is worth price tokens and spare seconds may be
// lost. landed is by depth, see [landing.landed].
func (h *hold) plan(n int, landed []float64, price, spare float64) (lanes, depth int) {
	if n == 0 || !h.times.known {
		return 0, 0
	}
	return h.best(n, landed, price, spare)
}

// shadow is how many of n lanes to ask behind a round in which none was asked, to learn what guesses are worth. A
// plain round takes plain.
func (h *hold) shadow(n int, plain, spare float64) (lanes, depth int) {
	if !h.times.known {
		if plain > spare { // nothing better to go by
			return 0, 0
		}
		return 1, slack
	}
	if h.wait--; h.wait > 0 {
		return 0, 0
	}
	k := h.explore(n, spare)
	h.park = k == 0
	return k, slack
}

// best is the number of lanes and the depth that are worth most, 0 where none is worth its time.
func (h *hold) best(n int, landed []float64, price, spare float64) (lanes, depth int) {
	worth := 0.0
	for d := 1; d <= autoDepth; d++ {
		for k := 1; k <= n; k++ {
			t := h.times.at(wish{k, d, k * d})
			if v := float64(k)*h.worth.v*landed[d] - price*t; v > worth && t <= spare {
				lanes, depth, worth = k, d, v
			}
		}
	}
	return lanes, depth
}

// explore is the least power of two lanes that was never asked, or 1: 0 until the account can bear it.
func (h *hold) explore(n int, spare float64) int {
	lanes := 1
	for k := 1; k <= n; k *= 2 {
		if !h.tried[k] {
			lanes = k
			break
		}
	}
	if h.times.at(wish{lanes, slack, lanes * slack}) > spare {
		return 0
	}
	return lanes
}

// offered hears what the guesses that w brought were worth, of which landed were expected to land, and their
// time. of is the lanes there are, all of which could be asked for as much if that pays.
func (h *hold) offered(w wish, of int, gain, expected, seconds float64, landed []float64, price float64) {
	h.times.observe(w, seconds)
	h.tried[w.lanes] = true
	if expected > 0 {
		h.worth.add(gain/expected, holdRate)
	}
	if k, _ := h.best(of, landed, price, math.Inf(1)); k > 0 {
		h.pause, h.park, h.off, h.sleep = minWait, false, false, 0
	} else {
		h.pause = min(max(2*h.pause, minWait), maxWait)
		h.park = h.off || h.pause >= parkAfter
	}
	h.wait = h.pause
}

// seeded hears of a trial on a prompt, which counts as the first one on a lane.
func (h *hold) seeded(seconds float64) {
	h.seed = true
	h.times.observe(seedWish, seconds)
	h.tried[1] = true
	h.pause = max(h.pause, minWait)
	h.wait = h.pause
}

// unread hears that a round could not use what it was asked: the next try comes after as long a wait.
func (h *hold) unread() { h.wait = h.pause }

// watch is [policy.watch]: while the drafter is off, one lane now and then.
func (h *hold) watch() bool {
	if !h.off {
		return true
	}
	if h.rest > 0 {
		return false
	}
	h.rest, h.wait = h.sleep, 0
	return true
}

// parked is [policy.parked].
func (h *hold) parked() bool {
	h.rest--
	if !h.park {
		return false
	}
	h.park, h.off = false, true
	h.sleep = min(max(2*h.sleep, minSleep), maxSleep)
	h.rest = h.sleep
	return true
}
