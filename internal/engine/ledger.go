package engine

import (
	"cmp"
	"slices"
)

// ledger gives as many guesses as pay, and keeps an account so that drafting cannot lose
// more than a sliver of the run, whatever drafter, model and device do.
//
// A drafted round is credited with the time that plain rounds would have taken for its
// tokens, by the plain rounds measured with as many lanes, and debited with its own. What
// the account has above -lossShare of the time so far, and one plain round, is spare:
// nothing is begun whose rows and guesses, all wrong, would cost more. So a run takes at
// most lossShare and one round longer than plain decoding, as far as the measured times
// hold; every plainEvery-th round is plain to keep the reference true. What the account does
// not see is that lanes which would have ended together end apart.
//
// What to verify is chosen by price: the guesses of all lanes in order of the chance that
// they land, cut where tokens minus price·time is largest. All cuts are looked at, since
// the time of a forward goes up in steps. No rule looks at the number of lanes as such.
type ledger struct {
	times   curve        // of a round without prompt rows, by its rows
	decode  int          // such a round has no more rows
	plain   []plainTimes // by lanes that draw
	landing landing
	hold    hold

	balance float64 // seconds
	elapsed float64 // seconds of all rounds
	tokens  average // per round, lately, of rounds without prompt rows
	seconds average

	pick []candidate // scratch
}

const (
	lossShare  = 0.002 // of the time so far that drafting may have lost
	safety     = 0.005 // of the plain rate that a drafted round must make up for, against its noise
	plainEvery = 64    // rounds with as many lanes
	leastGain  = 0.01  // of the lanes' tokens: smaller gains are within the noise of times
	lately     = 0.05  // weight of a round in the recent rate

	// The account keeps no more than the larger of these, so that gains of long ago do not
	// pay for a long bad stretch.
	mostSeconds = 0.25
	mostRounds  = 4 // plain ones
)

// newLedger is for up to lanes lanes and rows rows, of which decoding ones are no more than decode.
func newLedger(lanes, decode, rows int) *ledger {
	return &ledger{
		times: newCurve(rows), decode: decode,
		plain: make([]plainTimes, lanes+1),
		hold:  newHold(lanes),
	}
}

func (g *ledger) open(r *round) bool {
	open := g.drafts(r)
	if !open && r.asked > 0 {
		g.hold.unread()
	}
	return open
}

// drafts reports whether r may have guesses.
func (g *ledger) drafts(r *round) bool {
	if r.lanes == 0 || r.prompt > 0 {
		return false // the time of a round with prompt rows says nothing about rounds without
	}
	if g.plain[r.lanes].due() {
		return false
	}
	spent := g.spare(r.lanes) < 0
	g.hold.park = g.hold.park || spent // watching costs, too
	return !spent
}

func (g *ledger) watch() bool { return g.hold.watch() }

func (g *ledger) parked() bool { return g.hold.parked() }

func (g *ledger) timed(rows int, seconds float64) { g.times.observe(rows, seconds) }

func (g *ledger) rehearsed(times []timing) { g.hold.rehearsed(times) }

func (g *ledger) ask(r *round, spans []span) {
	known := 0
	for i := range spans {
		s := &spans[i]
		s.want = 0
		if len(s.guess) == 0 && s.lane.known {
			known++
		}
	}
	if known == 0 {
		return
	}
	landed := g.landing.landed()
	n, depth := g.hold.plan(known, landed[:], g.price(r.lanes), g.spare(r.lanes))
	g.want(spans, n, depth, func(s *span) bool { return len(s.guess) == 0 && s.lane.known })
}

// want asks for n of the lanes that may be asked about, each time others. Without prompt rows every span draws.
func (g *ledger) want(spans []span, n, depth int, may func(*span) bool) {
	for i := range spans {
		s := &spans[(g.hold.turn+i)%len(spans)]
		if n > 0 && may(s) {
			s.want = min(depth, s.lane.grant+slack)
			n--
		}
	}
	g.hold.turn++
}

// behind asks for guesses that nothing waits for: they show whether the drafter would pay.
func (g *ledger) behind(r *round, spans []span) {
	goesOn := func(s *span) bool { return s.lane.known && !s.lane.done() }
	known := 0
	for i := range spans {
		if goesOn(&spans[i]) {
			known++
		}
	}
	if known == 0 {
		return
	}
	n, depth := g.hold.shadow(known, g.plain[r.lanes].typical, g.spare(r.lanes))
	g.want(spans, n, depth, goesOn)
}

// spare is how many seconds may be lost now.
func (g *ledger) spare(lanes int) float64 {
	return g.balance + lossShare*g.elapsed + g.plain[lanes].typical
}

// price is what a second is worth in tokens: the plain rate, or the recent one if it is better.
func (g *ledger) price(lanes int) float64 {
	plain := float64(lanes) / g.plain[lanes].typical
	if g.seconds.v > 0 {
		return max(plain, g.tokens.v/g.seconds.v)
	}
	return plain
}

// candidate is a guess that may be verified, with the chance that it and all before it land.
type candidate struct {
	span, depth int
	chance      float64
	slow        bool
}

func (g *ledger) cut(r *round, spans []span) {
	g.rank(spans)
	if len(g.pick) == 0 && r.asked == 0 {
		return
	}
	drafting := r.draft.Seconds()
	k, gain := g.best(r.lanes, g.spare(r.lanes)-drafting)
	for i := range spans {
		spans[i].guess = spans[i].guess[:0]
	}
	for _, c := range g.pick[:k] {
		s := &spans[c.span]
		s.guess = s.guess[:c.depth+1]
	}
	if r.asked > 0 {
		g.pick = slices.DeleteFunc(g.pick, func(c candidate) bool { return c.slow })
		_, without := g.best(r.lanes, 0)
		g.offered(r, spans, gain-without)
	}
}

// offered tells hold what the drafter's guesses in spans, already cut, were worth.
func (g *ledger) offered(r *round, spans []span, gain float64) {
	landed := g.landing.landed()
	w, expected := wish{lanes: r.asked}, 0.0
	for i := range spans {
		s := &spans[i]
		if s.want == 0 || !s.lane.known {
			continue
		}
		w.depth, w.guesses = max(w.depth, s.want), w.guesses+s.want
		expected += landed[s.want]
		s.lane.grant = len(s.guess)
	}
	g.hold.offered(w, r.lanes, gain, expected, r.draft.Seconds(), landed[:], g.price(r.lanes))
}

// rank sets pick to the guesses of all spans, the likeliest first, and puts them on trial.
func (g *ledger) rank(spans []span) {
	g.pick = g.pick[:0]
	for i := range spans {
		s := &spans[i]
		s.lane.trial.begin(len(s.lane.ids), s)
		chance := 1.0
		for j := range s.guess {
			chance *= g.landing.of(s.slow, j, chanceOf(s.chance, j))
			g.pick = append(g.pick, candidate{i, j, chance, s.slow})
		}
	}
	// A later guess of a lane never has the better chance, so every prefix of this order
	// holds prefixes of the lanes' guesses.
	slices.SortFunc(g.pick, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.chance, a.chance), cmp.Compare(a.depth, b.depth), cmp.Compare(a.span, b.span))
	})
}

// best is the number of candidates that is worth most among those whose rows cost no more
// than spare, and what the best of all numbers is worth, in tokens.
func (g *ledger) best(lanes int, spare float64) (k int, gain float64) {
	price := g.price(lanes)
	least := leastGain * float64(lanes)
	landed, most := 0.0, 0.0
	for i, c := range g.pick {
		landed += c.chance
		more := g.times.at(lanes+i+1) - g.times.at(lanes)
		v := landed - price*more
		if v < least {
			continue
		}
		gain = max(gain, v)
		if v > most && more <= spare {
			k, most = i+1, v
		}
	}
	return k, gain
}

func (g *ledger) settle(r *round, spans []span) {
	for i := range spans {
		l := spans[i].lane
		l.trial.answer(l.ids, &g.landing)
	}
	rest, drafting := r.rest.Seconds(), r.draft.Seconds()
	g.elapsed += rest + drafting
	// A round with prompt rows wants the logits of few rows, so it only anchors the curve
	// beyond the rounds without.
	if r.prompt == 0 || r.rows > g.decode {
		rest = g.times.observe(r.rows, rest)
	}
	if r.prompt > 0 || r.lanes == 0 {
		return
	}
	g.tokens.add(float64(r.tokens), lately)
	g.seconds.add(rest+drafting, lately)
	g.book(r, rest, drafting)
}

// book enters a round without prompt rows in the account.
func (g *ledger) book(r *round, rest, drafting float64) {
	plain := &g.plain[r.lanes]
	if r.guesses == 0 {
		plain.observe(rest)
		g.balance -= drafting
		return
	}
	plain.since++
	credit := float64(r.tokens) / float64(r.lanes) * plain.typical * (1 - safety)
	g.balance = min(g.balance+credit-rest-drafting, max(mostSeconds, mostRounds*plain.typical))
}
