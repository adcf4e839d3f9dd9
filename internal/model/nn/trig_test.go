package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"tfbatch/internal/model"
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
	table := RopeTable(4097, 64, model.Rope{Theta: 1e6})
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
	table := RopeTable(2048, dim, model.Rope{Theta: theta})
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

// TestStretchedAngles goes by the words of transformers' own code: an angle whose wave is long beside the first
// training is slowed by the factor, one whose wave is short is left, and those between are mixed.
func TestStretchedAngles(t *testing.T) {
	const dim, theta = 64, 5e5
	llama3 := model.Rope{Theta: theta, Kind: model.RopeLlama3, Factor: 32, Low: 1, High: 4, Original: 8192}
	linear := model.Rope{Theta: theta, Kind: model.RopeLinear, Factor: 2.5}
	slow, fast, between := 0, 0, 0
	for i := range dim / 2 {
		plain := math.Pow(theta, -2*float64(i)/dim)
		wave, want := 2*math.Pi/plain, plain
		switch long, short := 8192/1.0, 8192/4.0; {
		case wave > long:
			slow++
			want /= 32
		case wave >= short:
			between++
			smooth := (8192/wave - 1) / (4 - 1)
			want = (1-smooth)*plain/32 + smooth*plain
		default:
			fast++
		}
		if got := stretched(plain, llama3); math.Abs(got-want) > 1e-14*want {
			t.Errorf("pair %d: %v, want %v", i, got, want)
		}
		if got := stretched(plain, linear); got != plain/2.5 {
			t.Errorf("pair %d: %v, want %v", i, got, plain/2.5)
		}
	}
	if slow == 0 || fast == 0 || between == 0 {
		t.Errorf("%d slow, %d fast and %d between", slow, fast, between)
	}
	sin, cos := math.Sincos(100 / 2.5)
	if row := RopeTable(101, dim, linear)[100*dim:]; math.Abs(float64(row[0])-cos) > 1e-7 || math.Abs(float64(row[dim/2])-sin) > 1e-7 {
		t.Errorf("position 100 turns by %v, %v", row[0], row[dim/2])
	}
}
