package engine

import (
	"cmp"
	"slices"
)

// ledger gives as many guesses as pay, and keeps an account so that drafting cannot lose
// more than a sliver of the run, whatever drafter, model and device do.
//
// A drafted round is credited with the time that plain rounds would have taken for its
// tokens, by the plain rounds measured with as many lanes, and debited with its own. While
// the account is below -lossShare of the time so far, rounds are plain. Since a round
// starts only above that line and loses at most its own length R, a run of length T takes
// at most (lossShare + R/T)·T longer than plain decoding, if the plain rate is measured
// right; every plainEvery-th round is plain to keep it so.
//
// What to verify is chosen by price: the guesses of all lanes in order of the chance that
// they land, cut where tokens minus price·time is largest. All cuts are looked at, since
// the time of a forward goes up in steps. No rule looks at the number of lanes as such.
type ledger struct {
	times   curve
	plain   []plainTimes // by lanes that draw
	landing landing
	hold    hold

	balance float64 // seconds, at most maxBalance
	elapsed float64 // seconds of all rounds
	tokens  average // per round, lately, of rounds without prompt rows
	seconds average

	pick []candidate // scratch
}

const (
	lossShare  = 0.002 // of the time so far that drafting may have lost
	safety     = 0.005 // of the plain rate that a drafted round must make up for, against its noise
	maxBalance = 0.25  // seconds: gains of long ago do not pay for a long bad stretch
	plainEvery = 64    // rounds with as many lanes
	leastGain  = 0.01  // of the lanes' tokens: smaller gains are within the noise of times
	lately     = 0.05  // weight of a round in the recent rate
)

// newLedger is for up to lanes lanes and rows rows, of which decoding ones are no more than decode.
func newLedger(lanes, decode, rows int) *ledger {
	return &ledger{times: newCurve(decode, rows), plain: make([]plainTimes, lanes+1)}
}

func (g *ledger) most(r *round) int {
	if r.lanes == 0 || r.prompt > 0 {
		return 0 // the time of a round with prompt rows says nothing about rounds without
	}
	if g.plain[r.lanes].due() || g.balance < -lossShare*g.elapsed {
		return 0
	}
	if !g.hold.wanted(g.plain[r.lanes].typical()) {
		return 0
	}
	return autoDepth
}

// candidate is a guess that may be verified, with the chance that it and all before it land.
type candidate struct {
	span, depth int
	chance      float64
}

func (g *ledger) cut(r *round, spans []span) {
	g.pick = g.pick[:0]
	for i := range spans {
		s := &spans[i]
		if len(s.guess) == 0 {
			continue
		}
		s.lane.trial.begin(len(s.lane.ids), s.guess, s.chance)
		chance := 1.0
		for j := range s.guess {
			chance *= g.landing.of(j, chanceOf(s.chance, j))
			g.pick = append(g.pick, candidate{i, j, chance})
		}
		s.guess = s.guess[:0]
	}
	// A later guess of a lane never has the better chance, so every prefix of this order
	// holds prefixes of the lanes' guesses.
	slices.SortFunc(g.pick, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.chance, a.chance), cmp.Compare(a.depth, b.depth), cmp.Compare(a.span, b.span))
	})
	k, gain := g.best(r)
	for _, c := range g.pick[:k] {
		s := &spans[c.span]
		s.guess = s.guess[:c.depth+1]
	}
	g.hold.offered(gain, r.draft.Seconds(), g.price(r.lanes))
}

// best is the number of candidates that is worth most, and by how many tokens it beats none.
func (g *ledger) best(r *round) (k int, gain float64) {
	price := g.price(r.lanes)
	alone := g.times.at(r.lanes)
	least := leastGain * float64(r.lanes)
	landed := 0.0
	for i, c := range g.pick {
		landed += c.chance
		if v := landed - price*(g.times.at(r.lanes+i+1)-alone); v > gain && v > least {
			k, gain = i+1, v
		}
	}
	return k, gain
}

// price is what a second is worth in tokens: the plain rate, or the recent one if it is better.
func (g *ledger) price(lanes int) float64 {
	plain := float64(lanes) / g.plain[lanes].typical()
	if g.seconds.v > 0 {
		return max(plain, g.tokens.v/g.seconds.v)
	}
	return plain
}

func (g *ledger) settle(r *round, spans []span) {
	for i := range spans {
		s := &spans[i]
		l := s.lane
		l.trial.answer(l.ids, &g.landing)
	}
	rest, drafting := r.rest.Seconds(), r.draft.Seconds()
	g.elapsed += rest + drafting
	g.times.observe(r, rest)
	if r.prompt > 0 || r.lanes == 0 {
		return
	}
	g.tokens.add(float64(r.tokens), lately)
	g.seconds.add(rest+drafting, lately)
	plain := &g.plain[r.lanes]
	if r.guesses == 0 {
		plain.observe(rest)
		g.balance -= drafting
		return
	}
	plain.since++
	credit := float64(r.tokens) / float64(r.lanes) * plain.typical() * (1 - safety)
	g.balance = min(maxBalance, g.balance+credit-rest-drafting)
}

// hold decides whether the drafter is asked at all, where its own time counts. While what
// it offers is not worth its time it is asked now and then, ever more rarely; its guesses
// are then scored on what comes, and verified if they happen to pay.
type hold struct {
	cost average // seconds of a round's guesses
	net  average // tokens gained, less the price of the drafter's time
	wait int     // rounds until it is asked again
	next int     // length of the next wait
}

const (
	free     = 0.001 // of a plain round: a drafter as quick as that is always asked
	minWait  = 8
	maxWait  = 256
	holdRate = 0.2 // weight of a round in cost and net
)

func (h *hold) wanted(plain float64) bool {
	if h.cost.n == 0 || h.net.v > 0 || h.cost.v < free*plain {
		return true
	}
	h.wait--
	return h.wait <= 0
}

// offered hears how many tokens the guesses of a round were worth, and the time they took.
func (h *hold) offered(gain, seconds, price float64) {
	h.cost.add(seconds, holdRate)
	h.net.add(gain-price*seconds, holdRate)
	if h.net.v > 0 {
		h.next = minWait
		return
	}
	h.next = min(max(2*h.next, minWait), maxWait)
	h.wait = h.next
}
