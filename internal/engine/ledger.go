package engine

import (
	"cmp"
	"slices"
)

// ledger gives as many guesses as pay, and keeps an account so that drafting cannot lose
// more than a sliver of the run, whatever drafter, model and device do.
//
// A drafted round is credited with the time that plain rounds would have taken for its
// tokens, by the plain rounds measured with as many lanes and contexts as long, and debited with its own. What
// the account has above -lossShare of the time so far, and one plain round, is spare:
// nothing is begun whose rows and guesses, all wrong, would cost more. So a run takes at
// most lossShare and one round longer than plain decoding, and the few trials on prompts, as
// far as the measured times hold; every plainEvery-th round is plain to keep the reference true. Where no request
// waits for a lane, a token is worth what it brings the end of the last one nearer, see [ledger.weigh].
//
// What to verify is chosen by price: the guesses of all lanes in order of the chance that
// they land, cut where tokens minus price·time is largest. All cuts are looked at, since
// the time of a forward goes up in steps. No rule looks at the number of lanes as such.
type ledger struct {
	times   curve        // of a round without prompt rows, by its rows
	probed  curve        // of a forward by its rows, all measured alike before the first round
	decode  int          // such a round has no more rows
	plain   []references // by lanes that draw
	landing [classes]landing
	hold    hold

	balance float64 // seconds
	elapsed float64 // seconds of all rounds
	tokens  average // per round, lately, of rounds without prompt rows
	seconds average

	looks int // rounds in which Quick was asked

	pick    []candidate // scratch
	longest []*span     // scratch
}

const (
	lossShare  = 0.002 // of the time so far that drafting may have lost
	safety     = 0.005 // of the plain rate that a drafted round must make up for, against its noise
	plainEvery = 64    // rounds with as many lanes
	leastGain  = 0.03  // of the lanes' tokens: smaller gains are within the noise of times
	lookEvery  = 8     // rounds in which Quick is asked for less than all
	lately     = 0.05  // weight of a round in the recent rate

	// The account keeps no more than the larger of these, so that gains of long ago do not
	// pay for a long bad stretch. Less is soon used up by the noise of a machine.
	mostSeconds = 0.25
	mostRounds  = 4 // plain ones
)

// newLedger is for up to lanes lanes and rows rows, of which decoding ones are no more than decode.
func newLedger(lanes, decode, rows int) *ledger {
	return &ledger{
		times: newCurve(rows), probed: newCurve(rows), decode: decode,
		plain: make([]references, lanes+1),
		hold:  newHold(lanes),
	}
}

func (g *ledger) anew() { g.balance, g.elapsed = 0, 0 }

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
	if g.reference(r).due() {
		return false
	}
	spent := g.spare(r) < 0
	g.hold.park = g.hold.park || spent // watching costs, too
	return !spent
}

func (g *ledger) watch() bool { return g.hold.watch() }

// seeds asks for few trials, and for none that would take longer than a plain round.
func (g *ledger) seeds() bool {
	h := &g.hold
	if h.seeds == mostSeeds || !h.times.known || h.times.at(seedWish) > g.times.at(1) {
		return false
	}
	h.seeds++
	return true
}

func (g *ledger) seeded(t *trial, ids []int32, seconds float64) {
	t.answer(ids, &g.landing[t.class])
	g.hold.seeded(seconds)
}

func (g *ledger) parked() bool { return g.hold.parked() }

func (g *ledger) timed(rows int, seconds float64) {
	g.times.observe(rows, seconds)
	g.probed.observe(rows, seconds)
}

func (g *ledger) rehearsed(times []timing) { g.hold.rehearsed(times) }

// quick asks for some more guesses than were verified the last time: they cost no pass, but to rank many that no
// round has use for is work too. Now and then it asks for all, since only many may be worth a step of the times.
func (g *ledger) quick(_ *round, spans []span, most int) {
	g.looks++
	for i := range spans {
		s := &spans[i]
		if s.want = most; g.looks%lookEvery != 0 {
			s.want = min(most, 2*s.lane.taken+slack)
		}
	}
}

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
	if g.hold.worth.n == 0 && g.hold.seed { // what is known of the worth is the price of a row
		g.hold.worth.v = max(1-g.price(r)*g.more(r, 1), 0)
	}
	landed := g.landed(spans)
	n, depth := g.hold.plan(known, landed[:], g.price(r), g.spare(r))
	g.want(spans, n, depth, func(s *span) bool { return len(s.guess) == 0 && s.lane.known })
}

// landed is that of the first lane's class; rows of a job seldom differ in it.
func (g *ledger) landed(spans []span) [autoDepth + 1]float64 {
	return g.landing[spans[0].lane.class()].landed()
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
	n, depth := g.hold.shadow(known, g.reference(r).typical, g.spare(r))
	g.want(spans, n, depth, goesOn)
}

// reference is the plain rounds that r is compared to: of as many lanes, as far on.
func (g *ledger) reference(r *round) *plainTimes { return g.plain[r.lanes].at(r.context) }

// stretch is how much longer rounds of r's lanes take than those that were measured first, which had other contexts.
func (g *ledger) stretch(r *round) float64 { return g.plain[r.lanes].stretch(r.context) }

// more is the time that guesses add to a round.
func (g *ledger) more(r *round, guesses int) float64 {
	return g.stretch(r) * (g.times.at(r.lanes+guesses) - g.times.at(r.lanes))
}

// spare is how many seconds may be lost now.
func (g *ledger) spare(r *round) float64 {
	return g.balance + lossShare*g.elapsed + g.reference(r).typical
}

// price is what a second is worth in tokens: the plain rate, or the recent one if it is better.
func (g *ledger) price(r *round) float64 {
	plain := float64(r.lanes) / g.reference(r).typical
	if g.seconds.v > 0 {
		return max(plain, g.tokens.v/g.seconds.v)
	}
	return plain
}

// candidate is a guess that may be verified, with the chance that it and all before it land, in tokens' worth.
type candidate struct {
	span, depth int
	worth       float64
	slow        bool
}

func (g *ledger) cut(r *round, spans []span) {
	g.weigh(r, spans)
	g.rank(spans)
	if len(g.pick) == 0 && r.asked == 0 {
		return
	}
	drafting := r.draft.Seconds()
	k, gain := g.best(r, g.spare(r)-drafting)
	for i := range spans {
		spans[i].guess = spans[i].guess[:0]
		spans[i].lane.taken = 0
	}
	for _, c := range g.pick[:k] {
		s := &spans[c.span]
		if s.guess = s.guess[:c.depth+1]; !c.slow {
			s.lane.taken = c.depth + 1
		}
	}
	if r.asked > 0 {
		g.pick = slices.DeleteFunc(g.pick, func(c candidate) bool { return c.slow })
		_, without := g.best(r, 0)
		g.offered(r, spans, gain-without)
	}
}

// offered tells hold what the drafter's guesses in spans, already cut, were worth.
func (g *ledger) offered(r *round, spans []span, gain float64) {
	landed := g.landed(spans)
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
	g.hold.offered(w, r.lanes, gain, expected, r.draft.Seconds(), landed[:], g.price(r))
}

// rank sets pick to the guesses of all spans, those that are worth most first, and puts them on trial.
func (g *ledger) rank(spans []span) {
	g.pick = g.pick[:0]
	for i := range spans {
		s := &spans[i]
		s.lane.trial.begin(len(s.lane.ids), s)
		chance, class := 1.0, s.lane.class()
		for j := range s.guess {
			chance *= g.landing[class].of(s.slow, j, chanceOf(s.chance, j))
			g.pick = append(g.pick, candidate{i, j, chance * s.weight, s.slow})
		}
	}
	// A later guess of a lane is never worth more, so every prefix of this order
	// holds prefixes of the lanes' guesses.
	slices.SortFunc(g.pick, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.depth, b.depth), cmp.Compare(a.span, b.span))
	})
}

// best is the number of candidates that is worth most among those whose rows cost no more
// than spare, and what the best of all numbers is worth, in tokens.
func (g *ledger) best(r *round, spare float64) (k int, gain float64) {
	price := g.price(r)
	least := leastGain * float64(r.lanes)
	landed, most := 0.0, 0.0
	for i, c := range g.pick {
		landed += c.worth
		more := g.more(r, i+1)
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
		l.trial.answer(l.ids, &g.landing[l.trial.class])
	}
	rest, drafting := r.rest.Seconds(), (r.draft + r.looked).Seconds()
	g.elapsed += rest + drafting
	if r.prompt == 0 && r.lanes > 0 && r.guesses == 0 {
		g.plain[r.lanes].observe(r.context, rest)
	}
	// A round with prompt rows wants the logits of few rows, so it only anchors the curve
	// beyond the rounds without.
	if r.prompt == 0 || r.rows > g.decode {
		rest = g.stretch(r) * g.times.observe(r.rows, rest/g.stretch(r))
	}
	if r.prompt > 0 || r.lanes == 0 {
		g.balance -= drafting
		return
	}
	g.tokens.add(float64(r.tokens), lately)
	g.seconds.add(rest+drafting, lately)
	g.book(r, spans, rest, drafting)
}

// book enters a round without prompt rows in the account.
func (g *ledger) book(r *round, spans []span, rest, drafting float64) {
	plain := g.reference(r)
	if r.guesses == 0 {
		g.balance -= drafting
		return
	}
	plain.since++
	credit := r.credit(spans, plain.typical) * (1 - safety)
	g.balance = min(g.balance+credit-rest-drafting, max(mostSeconds, mostRounds*plain.typical))
}
