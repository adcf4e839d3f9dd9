package backend

import "math"

// The rounding of inputs of I8.md, one value at a time: the definition where words fall short.

// Levels is the largest code of an input.
const Levels = 127

// leastMagnitude is where a unit of inputs counts as zeros: 127 / m must not overflow.
const leastMagnitude = 0x1p-100

// RoundUnit sets codes to the inputs x of a unit in steps of d, and returns d and their sum.
func RoundUnit(codes []int8, x []float32) (d float32, sum int32) {
	bits := Magnitude(x)
	d, r := Steps(bits)
	if r == 0 { // of zeros, or with a NaN or an infinity
		clear(codes)
		return d, 0
	}
	for k, v := range x {
		codes[k] = int8(math.RoundToEven(float64(float32(v * r))))
		sum += int32(codes[k])
	}
	return d, sum
}

// Magnitude is the largest |x|, as bits: those of a NaN lie above all others.
func Magnitude(x []float32) (bits uint32) {
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	return bits
}

// Steps returns the step d of a unit whose largest magnitude has these bits, and what its inputs are
// multiplied by: zero where every code is zero.
func Steps(bits uint32) (d, r float32) {
	m := math.Float32frombits(bits)
	switch {
	case bits >= 0x7f800000:
		return float32(math.NaN()), 0
	case m < leastMagnitude:
		return 0, 0
	}
	return m / Levels, Levels / m
}
