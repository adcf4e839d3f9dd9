// Package metrics keeps what a run measures of itself: a file of samples over time that stays small however long
// the run is, and the text that Prometheus reads. Neither says anything of a reply; nothing depends on them.
//
// Start with [Sample], then [Log], which writes the file, and [Read], which reads any.
package metrics

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Sample is what happened in a span of time. Two that follow each other add up to one.
type Sample struct {
	End          int64 `json:"end_ms"` // Unix time
	Span         int64 `json:"ms"`     // how long before End it begins
	Rows         int64 `json:"rows"`   // that ended
	Errors       int64 `json:"errors"` // of these
	Tokens       int64 `json:"tokens"` // of replies
	PromptTokens int64 `json:"prompt_tokens"`
	Rounds       int64 `json:"rounds"`  // forwards
	LaneTime     int64 `json:"lane_ms"` // of all lanes, while a reply ran on them
	Lanes        int   `json:"lanes"`   // that there were
	Total        int64 `json:"total"`   // rows of the input; 0: not known
	RSS          int64 `json:"rss"`     // the most bytes of memory; 0: not known

	// Guessed and Kept count guesses by depth: a lane's first one of a round is at 0.
	Guessed []int64 `json:"guessed,omitempty"`
	Kept    []int64 `json:"kept,omitempty"`
}

// maxDepths bounds the depths of a sample, well above those of any drafter.
const maxDepths = 64

// maxValue bounds each number, so that the sum of a file cannot overflow.
const maxValue = 1 << 45

// check refuses what no run has measured.
func (s *Sample) check() error {
	for _, v := range [][]int64{{s.End, s.Span, s.Rows, s.Errors, s.Tokens, s.PromptTokens, s.Rounds, s.LaneTime, int64(s.Lanes), s.Total, s.RSS}, s.Guessed, s.Kept} {
		for _, n := range v {
			if n < 0 || n > maxValue {
				return fmt.Errorf("value %d: want 0 to %d", n, int64(maxValue))
			}
		}
	}
	if len(s.Guessed) > maxDepths || len(s.Kept) > len(s.Guessed) || s.Span > s.End {
		return errors.New("is no span of a run")
	}
	return nil
}

// Start is when the sample's span begins, in Unix milliseconds.
func (s *Sample) Start() int64 { return s.End - s.Span }

// Add takes in a sample that follows.
func (s *Sample) Add(next Sample) {
	s.End, s.Span = max(s.End, next.End), s.Span+next.Span
	s.Rows += next.Rows
	s.Errors += next.Errors
	s.Tokens += next.Tokens
	s.PromptTokens += next.PromptTokens
	s.Rounds += next.Rounds
	s.LaneTime += next.LaneTime
	s.Lanes = max(s.Lanes, next.Lanes)
	s.Total, s.RSS = max(s.Total, next.Total), max(s.RSS, next.RSS)
	s.Guessed, s.Kept = sum(s.Guessed, next.Guessed), sum(s.Kept, next.Kept)
}

func sum(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		out[i] += n
	}
	return out
}

// follows reports whether next begins where s ends, up to the slack of a busy machine: no run was stopped between.
func (s *Sample) follows(next *Sample, every time.Duration) bool {
	gap := next.Start() - s.End
	return gap <= max(every.Milliseconds(), 1000) && gap >= -1000
}
