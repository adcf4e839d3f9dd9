package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Sampling says how tokens are drawn. The zero value is greedy. The order of work and every
// order of arithmetic is the section "Sampling" of backend/ARITHMETIC.md.
type Sampling struct {
	Seed        uint64
	Temperature float32 // 0: the largest logit
	TopK        int     // 0: off
	TopP        float32 // 0 or 1: off
	MinP        float32 // 0: off

	RepetitionPenalty float32 // divides positive logits of ids seen, prompt included; 0 or 1: off
	PresencePenalty   float32 // subtracted once for an id of the reply
	FrequencyPenalty  float32 // subtracted for each time an id is in the reply
	LogitBias         map[int32]float32

	StopIDs   []int32 // end the reply, beside the model's end tokens
	IgnoreEOS bool    // the model's end tokens do not end it
}

// minTemperature is the least temperature that is not 0. Below it, differences between
// logits that any model gives pass the range of f32 when divided.
const minTemperature = 1e-5

// maxPenalty bounds penalties and biases, far above any use, so that no sum of them overflows.
const maxPenalty = 1e6

// check names the first value that is out of its range.
func (s *Sampling) check(vocab int) error {
	for _, f := range []struct {
		name     string
		v        float32
		min, max float32
	}{
		{"temperature", s.Temperature, 0, maxPenalty},
		{"top p", s.TopP, 0, 1},
		{"min p", s.MinP, 0, 1},
		{"repetition penalty", s.RepetitionPenalty, 0, maxPenalty},
		{"presence penalty", s.PresencePenalty, -maxPenalty, maxPenalty},
		{"frequency penalty", s.FrequencyPenalty, -maxPenalty, maxPenalty},
	} {
		if !(f.v >= f.min && f.v <= f.max) { // so written, NaN is out of range
			return fmt.Errorf("%s is %v: want %v to %v", f.name, f.v, f.min, f.max)
		}
	}
	switch {
	case s.Temperature > 0 && s.Temperature < minTemperature:
		return fmt.Errorf("temperature is %v: want 0 (greedy) or at least %v", s.Temperature, minTemperature)
	case s.RepetitionPenalty > 0 && s.RepetitionPenalty < 1/maxPenalty:
		return fmt.Errorf("repetition penalty is %v: want 0 (off) or at least %v", s.RepetitionPenalty, 1/maxPenalty)
	case s.TopK < 0:
		return fmt.Errorf("top k is %d: want 0 (off) or more", s.TopK)
	}
	return s.checkIDs(vocab)
}

func (s *Sampling) checkIDs(vocab int) error {
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		bias := s.LogitBias[id]
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("logit bias of id %d: the vocabulary has %d", id, vocab)
		}
		if !(math.Abs(float64(bias)) <= maxPenalty) {
			return fmt.Errorf("logit bias of id %d is %v: want %v to %v", id, bias, -maxPenalty, float64(maxPenalty))
		}
	}
	for _, id := range s.StopIDs {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("stop id is %d: the vocabulary has %d", id, vocab)
		}
	}
	return nil
}
