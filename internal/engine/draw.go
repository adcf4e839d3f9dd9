package engine

import (
	"fmt"
	"math"
)

// draw chooses the token that follows l's ids. It may use the logits as scratch.
func (e *Engine) draw(l *lane, logits []float32) (int32, error) {
	if i := nonfinite(logits); i >= 0 {
		return 0, fmt.Errorf("id %d at position %d is %v: %w", i, len(l.ids), logits[i], ErrNonfinite)
	}
	return argmax(logits), nil
}

// nonfinite returns the first id whose logit is NaN or infinite, -1 when all are finite.
func nonfinite(logits []float32) int {
	const exponent = 0x7f80_0000
	for i, v := range logits {
		if math.Float32bits(v)&exponent == exponent {
			return i
		}
	}
	return -1
}

// argmax returns the id of the largest logit, the lowest of equals.
func argmax(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}
