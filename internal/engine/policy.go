package engine

import "time"

// policy decides how many guesses are asked for and verified. It can make a run slow; it
// cannot change a token, so it may use the clock.
type policy interface {
	// anew closes the account: what was gained so far pays for nothing any more.
	anew()
	// timed hears, before the first round, how long a forward takes.
	timed(rows int, seconds float64)
	// rehearsed hears, before the first round, how long a drafter that watches takes.
	rehearsed(times []timing)
	// watch reports whether a drafter that watches shall know a lane that is being admitted. Others know
	// every lane.
	watch() bool
	// seeds reports whether the drafter shall be tried on the prompt of a lane that is being admitted; true counts.
	seeds() bool
	// seeded hears how that went: t has its answer.
	seeded(t *trial, ids []int32, seconds float64)
	// parked reports, after settle, that such a drafter shall forget the lanes it knows.
	parked() bool
	// open reports whether this round may have guesses at all.
	open(r *round) bool
	// quick sets want of the spans, up to most, for Quick.
	quick(r *round, spans []span, most int)
	// ask sets want of the spans that the drafter shall be asked about, of those without a
	// guess; before, want stands as Quick was asked.
	ask(r *round, spans []span)
	// behind sets want of the spans whose lanes the drafter shall be asked about when the round is over, where
	// it was not asked in it. The guesses are read in the next round.
	behind(r *round, spans []span)
	// cut shortens the guesses of spans to those that are worth their rows.
	cut(r *round, spans []span)
	// settle hears how the round went, while the spans still know what was committed.
	settle(r *round, spans []span)
}

// round is what a policy knows of one forward.
type round struct {
	lanes   int  // that draw a token
	prompt  int  // prompt rows that ride along
	context int  // positions of a lane that draws, on average
	idle    bool // a lane is free, so no request waits for one
	open    bool // the policy let it have guesses
	asked   int  // lanes the drafter was asked about
	watched bool // the drafter watched the forward

	rows    int // all rows
	guesses int // rows that verified a guess
	kept    int // guesses that came true
	tokens  int // committed

	draft   time.Duration // spent in the drafter
	held    time.Duration // of that, behind the round before
	seeded  time.Duration // spent in the drafter on prompts
	looked  time.Duration // spent on guesses outside the drafter: Quick's, and what the policy makes of them
	rest    time.Duration // all else of the step
	forward time.Duration // of that, in the forward
	busy    time.Duration // of that, by the device's own clock
}

// fixed asks for n guesses and verifies what it gets.
type fixed int

func (fixed) anew()              {}
func (fixed) timed(int, float64) {}
func (fixed) rehearsed([]timing) {}
func (fixed) watch() bool        { return true }
func (fixed) seeds() bool        { return false }
func (fixed) parked() bool       { return false }
func (fixed) open(*round) bool   { return true }

func (f fixed) quick(_ *round, spans []span, most int) {
	for i := range spans {
		spans[i].want = most
	}
}

func (f fixed) ask(_ *round, spans []span) {
	for i := range spans {
		spans[i].want = int(f)
	}
}

func (fixed) behind(*round, []span)           {}
func (fixed) seeded(*trial, []int32, float64) {}
func (fixed) cut(*round, []span)              {}
func (fixed) settle(*round, []span)           {}
