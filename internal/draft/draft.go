// Package draft guesses how lanes go on, so that one forward of the target can check
// several positions at once. A drafter may be wrong at no cost but time: the engine
// draws every token itself and keeps a guess only where it equals the draw, so no
// drafter can change a token.
//
// Start with [Drafter]. [Copy] repeats the lane's own text. What this package refuses
// to know: sampling, scheduling, and when drafting pays; those are the engine's.
package draft

import (
	"context"
	"errors"
)

// ErrNonfinite is how a drafter reports a NaN or infinite score, and how the engine
// reports a guess that is no id and a chance that is no number. It ends the run before
// anything is committed: a drafter that computes nonsense is a fault of the device or of
// its files, not of a row.
var ErrNonfinite = errors.New("DraftNonfinite: the drafter gave a NaN, an infinity or an id outside the vocabulary")

// Drafter is called by the engine's goroutine alone. Per lane the order is Open, then
// Propose and Committed any number of times, then Release; a lane number comes again
// with the next Open.
type Drafter interface {
	// Open begins a lane. prompt may be kept until Release and must not be changed.
	Open(lane int, prompt []int32)
	// Propose fills asks, each of another lane, whose last committed token has not been
	// fed to the target yet. Lanes that are not asked had no use for guesses this round.
	// An error ends the run.
	Propose(ctx context.Context, asks []Ask) error
	// Committed says what the lane really went on with, guessed or not; ids is the
	// caller's again on return.
	Committed(lane int, ids []int32)
	// Release ends a lane.
	Release(lane int)
}

// Ask is a lane's wish for guesses, and the answer to it.
type Ask struct {
	Lane int
	Most int     // guesses wanted at most; the engine drops what is beyond
	IDs  []int32 // empty; the drafter appends its guesses for the next positions, in order
	// Chance is empty; a drafter that knows may append, for each guess, the probability
	// that it lands given that those before it did.
	Chance []float32
}
