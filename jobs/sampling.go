package jobs

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Bounds of sampling values. They stop slips of the pen and hostile rows, not any sensible use.
const (
	minTemperature = 1e-5    // below it, differences between logits leave the range of f32 when divided
	maxTemperature = 100     // beyond this the draw is uniform in all but name
	maxPenalty     = 2       // presence and frequency, as the OpenAI API has it
	maxRepetition  = 100     // a factor on logits
	maxBias        = 100     // as the OpenAI API has it: beyond it a token is certain or banned
	maxN           = 128     // replies held in memory until the row is written
	maxReply       = 1 << 20 // tokens of one reply
	maxStops       = 64      // each is looked for at every token
	maxStopBytes   = 1024    // text held back while a stop string may be completed
	maxStopIDs     = 1024
	maxBiases      = 1 << 16 // every token of a large vocabulary's share
)

// Check returns the first value that is out of range, nil when there is none. The same
// rules hold for a job file and for a row's own body.
func (s *Sampling) Check() *FieldError {
	for _, f := range []struct {
		name      string
		value     float32
		low, high float32
	}{
		{"temperature", s.Temperature, 0, maxTemperature},
		{"top_p", s.TopP, math.SmallestNonzeroFloat32, 1},
		{"min_p", s.MinP, 0, 1},
		{"repetition_penalty", s.RepetitionPenalty, 1.0 / maxRepetition, maxRepetition},
		{"presence_penalty", s.PresencePenalty, -maxPenalty, maxPenalty},
		{"frequency_penalty", s.FrequencyPenalty, -maxPenalty, maxPenalty},
	} {
		if !(f.value >= f.low && f.value <= f.high) { // false for NaN too
			return fieldError(f.name, "is %v, want %v to %v", f.value, f.low, f.high)
		}
	}
	if s.Temperature > 0 && s.Temperature < minTemperature {
		return fieldError("temperature", "is %v, want 0 (greedy) or at least %v", s.Temperature, minTemperature)
	}
	for _, f := range []struct {
		name             string
		value, low, high int
	}{
		{"top_k", s.TopK, 0, math.MaxInt32},
		{"n", s.N, 1, maxN},
		{"max_tokens", s.MaxTokens, 1, maxReply},
	} {
		if f.value < f.low || f.value > f.high {
			return fieldError(f.name, "is %d, want %d to %d", f.value, f.low, f.high)
		}
	}
	return s.checkLists()
}

func (s *Sampling) checkLists() *FieldError {
	if len(s.Stop) > maxStops {
		return fieldError("stop", "has %d strings, at most %d", len(s.Stop), maxStops)
	}
	for i, stop := range s.Stop {
		if len(stop) == 0 || len(stop) > maxStopBytes {
			return fieldError("stop", "string %d has %d bytes, want 1 to %d", i, len(stop), maxStopBytes)
		}
	}
	if len(s.StopIDs) > maxStopIDs {
		return fieldError("stop_ids", "has %d ids, at most %d", len(s.StopIDs), maxStopIDs)
	}
	for _, id := range s.StopIDs {
		if id < 0 {
			return fieldError("stop_ids", "has id %d, want 0 or more", id)
		}
	}
	if len(s.LogitBias) > maxBiases {
		return fieldError("logit_bias", "has %d ids, at most %d", len(s.LogitBias), maxBiases)
	}
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		if bias := s.LogitBias[id]; id < 0 || !(bias >= -maxBias && bias <= maxBias) {
			return fieldError("logit_bias", "has %v for id %d, want -%d to %d for an id from 0", bias, id, maxBias, maxBias)
		}
	}
	return nil
}

// FieldError is a value out of range, by the field's name in the job file.
type FieldError struct {
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

func fieldError(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
