package engine

// hold decides how many lanes the drafter is asked about, where its own time counts. While
// no number pays, it is asked now and then, ever more rarely and about few lanes; those
// guesses are scored on what comes, and verified if they happen to pay.
type hold struct {
	times curve   // of a round's guesses, by lanes asked
	gain  average // tokens that the guesses of one lane are worth, their rows paid
	wait  int     // rounds until it is asked again
	pause int     // length of the last wait
	turn  int     // counts rounds, so that few lanes asked are not always the same
}

const (
	minWait  = 8
	maxWait  = 256
	holdRate = 0.5 // weight of a round in gain
)

// lanes is how many of n lanes to ask, when a plain round takes plain, a second is worth
// price tokens and spare seconds may be lost.
func (h *hold) lanes(n int, plain, price, spare float64) int {
	if n == 0 {
		return 0
	}
	if !h.times.known {
		if plain > spare { // nothing better to go by
			return 0
		}
		return 1
	}
	best, most := 0, 0.0
	for k := 1; k <= n; k++ {
		v := float64(k)*h.gain.v - price*h.times.at(k)
		if v > most && h.times.at(k) <= spare {
			best, most = k, v
		}
	}
	if best > 0 {
		return best
	}
	if h.wait--; h.wait > 0 {
		return 0
	}
	return h.explore(n, spare)
}

// explore is the least power of two lanes whose time was never measured, or 1, if the
// account can bear it.
func (h *hold) explore(n int, spare float64) int {
	for k := 1; k <= n; k *= 2 {
		if h.times.measured[k].n == 0 && h.times.at(k) <= spare {
			return k
		}
	}
	if h.times.at(1) <= spare {
		return 1
	}
	return 0
}

// offered hears how many tokens the guesses of n lanes were worth, and the time they took.
func (h *hold) offered(n int, gain, seconds, price float64) {
	h.times.observe(n, seconds)
	h.gain.add(gain/float64(n), holdRate)
	if gain > price*seconds {
		h.pause = minWait
	} else {
		h.pause = min(max(2*h.pause, minWait), maxWait)
	}
	h.wait = h.pause
}
