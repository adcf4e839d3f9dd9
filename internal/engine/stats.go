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
	Asked         int64 // rounds in which Config.Drafter was asked
	Watched       int64 // rounds in which Config.Drafter watched the forward

	// Guessed and Kept are Drafted and Accepted by depth: a lane's first guess of a round counts at 0.
	Guessed, Kept [mostDepth]int64

	Forward time.Duration // spent in forwards, waiting for the device included
	Busy    time.Duration // of that, what the device itself worked; 0 where it does not know
	Draft   time.Duration // spent in Config.Drafter
	Host    time.Duration // spent on all else: scheduling, drawing, checking guesses
}

// Anew begins another job on the engine: it goes on by the times and chances that were learned, but what drafting
// gained before does not pay for what it may lose now.
func (e *Engine) Anew() {
	if e.window > 1 {
		e.policy.anew()
	}
}

// Stats returns the counters so far.
func (e *Engine) Stats() Stats { return e.stats }

// Since is what was done after an earlier reading.
func (s Stats) Since(was Stats) Stats {
	for i := range s.Guessed {
		s.Guessed[i] -= was.Guessed[i]
		s.Kept[i] -= was.Kept[i]
	}
	s.Rounds -= was.Rounds
	s.Rows -= was.Rows
	s.Tokens -= was.Tokens
	s.PrefillTokens -= was.PrefillTokens
	s.Drafted -= was.Drafted
	s.Accepted -= was.Accepted
	s.Asked -= was.Asked
	s.Watched -= was.Watched
	s.Forward -= was.Forward
	s.Busy -= was.Busy
	s.Draft -= was.Draft
	s.Host -= was.Host
	return s
}

func (s *Stats) add(r *round) {
	s.Rounds++
	s.Rows += int64(r.rows)
	s.Tokens += int64(r.tokens)
	s.PrefillTokens += int64(r.prompt)
	s.Drafted += int64(r.guesses)
	s.Accepted += int64(r.kept)
	if r.asked > 0 {
		s.Asked++
	}
	if r.watched {
		s.Watched++
	}
	s.Forward += r.forward
	s.Busy += r.busy
	s.Draft += r.draft + r.seeded
	s.Host += r.rest + r.looked - r.forward
}
