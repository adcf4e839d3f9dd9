package engine

import "time"

// Stats counts what an engine has done.
type Stats struct {
	Rounds        int64 // forwards
	Rows          int64 // rows of all forwards
	Tokens        int64 // committed tokens of replies
	PrefillTokens int64 // prompt tokens fed
	Drafted       int64 // guesses that were verified
	Accepted      int64 // of these, how many were kept

	Forward time.Duration // spent in forwards, waiting for the device included
	Draft   time.Duration // spent in the drafter
	Draw    time.Duration // spent drawing tokens
}

// Stats returns the counters so far.
func (e *Engine) Stats() Stats { return e.stats }
