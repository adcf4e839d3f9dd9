package engine

import "time"

// policy decides how many guesses are asked for and verified. It can make a run slow; it
// cannot change a token, so it may use the clock.
type policy interface {
	// timed hears, before the first round, how long a forward takes.
	timed(rows int, seconds float64)
	// rehearsed hears, before the first round, how long a drafter that watches takes.
	rehearsed(times []timing)
	// watch reports whether a drafter that watches shall know a lane that is being admitted. Others know
	// every lane.
	watch() bool
	// parked reports, after settle, that such a drafter shall forget the lanes it knows.
	parked() bool
	// open reports whether this round may have guesses at all.
	open(r *round) bool
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
	open    bool // the policy let it have guesses
	asked   int  // lanes the drafter was asked about
	watched bool // the drafter watched the forward

	rows    int // all rows
	guesses int // rows that verified a guess
	kept    int // guesses that came true
	tokens  int // committed

	draft   time.Duration // spent in the drafter
	held    time.Duration // of that, behind the round before
	rest    time.Duration // all else of the step
	forward time.Duration // of that, in the forward
}

// fixed asks for n guesses and verifies what it gets.
type fixed int

func (fixed) timed(int, float64) {}
func (fixed) rehearsed([]timing) {}
func (fixed) watch() bool        { return true }
func (fixed) parked() bool       { return false }
func (fixed) open(*round) bool   { return true }

func (f fixed) ask(_ *round, spans []span) {
	for i := range spans {
		spans[i].want = int(f)
	}
}

func (fixed) behind(*round, []span) {}
func (fixed) cut(*round, []span)    {}
func (fixed) settle(*round, []span) {}
