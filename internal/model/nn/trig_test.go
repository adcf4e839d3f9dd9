package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTrigAgreesWithTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x := r.Float64() * math.Exp2(float64(r.IntN(25)))
		sin, cos := sincos(x)
		if s, c := math.Sincos(x); math.Abs(sin-s) > 4e-16 || math.Abs(cos-c) > 4e-16 {
			t.Fatalf("sincos(%v) = %v, %v; math has %v, %v", x, sin, cos, s, c)
		}
		y := 1 + x*math.Exp2(float64(r.IntN(70)))
		if got, want := ln(y), math.Log(y); math.Abs(got-want) > 4e-16*(1+want) {
			t.Fatalf("ln(%v) = %v; math has %v", y, got, want)
		}
		z := -700 * r.Float64()
		if got, want := exp(z), math.Exp(z); math.Abs(got-want) > 2e-15*want {
			t.Fatalf("exp(%v) = %v; math has %v", z, got, want)
		}
	}
}

func TestTrigOfMultiplesOfHalfPi(t *testing.T) {
	for n := range 1 << 20 {
		x := float64(n) * (math.Pi / 2)
		sin, cos := sincos(x)
		if s, c := math.Sincos(x); math.Abs(sin-s) > 4e-16 || math.Abs(cos-c) > 4e-16 {
			t.Fatalf("sincos(%d·π/2) = %v, %v; math has %v, %v", n, sin, cos, s, c)
		}
	}
}

// TestRopeTableIsPinned holds the bits that every machine must give.
func TestRopeTableIsPinned(t *testing.T) {
	table := RopeTable(4097, 64, 1e6)
	var sum uint32
	for _, x := range table {
		sum = sum*31 + math.Float32bits(x)
	}
	if want := uint32(0xdd063f0e); sum != want {
		t.Errorf("the table sums to %#x, want %#x", sum, want)
	}
}

func TestRopeTableOfKnownAngles(t *testing.T) {
	const dim, theta = 16, 10000.0
	table := RopeTable(2048, dim, theta)
	for p := range 2048 {
		for i := range dim / 2 {
			sin, cos := math.Sincos(float64(p) * math.Pow(theta, -2*float64(i)/dim))
			row := table[p*dim:]
			if math.Abs(float64(row[i])-cos) > 1e-7 || math.Abs(float64(row[dim/2+i])-sin) > 1e-7 {
				t.Fatalf("position %d, pair %d: %v, %v, want %v, %v", p, i, row[i], row[dim/2+i], cos, sin)
			}
		}
	}
}
