package backend

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA rounds x·y + z once, by way of unbounded integers.
func exactFMA(x, y, z float32) float32 {
	for _, v := range [...]float32{x, y, z} {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return float32(float64(x)*float64(y) + float64(z)) // no rounding involved
		}
	}
	const enough = 1024 // bits: the exponents of p and z are at most 550 apart
	p := new(big.Float).SetPrec(enough).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
	s := p.Add(p, new(big.Float).SetPrec(enough).SetFloat64(float64(z)))
	if s.Sign() == 0 {
		return float32(float64(x)*float64(y) + float64(z)) // exact, and has the right zero
	}
	r, _ := s.Float32()
	return r
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestFMARoundsOnce(t *testing.T) {
	n := 4_000_000
	if testing.Short() {
		n = 200_000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		x, y, z := hardTriple(rng)
		want, each := exactFMA(x, y, z), []float32{z}
		FMAEach(each, []float32{x}, y)
		if got := FMA(x, y, z); !same(got, want) || !same(each[0], want) {
			t.Fatalf("FMA(%x, %x, %x) = %x, one of each %x, want %x", x, y, z, got, each[0], want)
		}
	}
}

// hardTriple draws from the places where a second rounding shows: sums on or beside the
// halfway points, near cancellation, and around the subnormals, besides any bits at all.
func hardTriple(rng *rand.Rand) (x, y, z float32) {
	bits := func() float32 { return math.Float32frombits(rng.Uint32()) }
	scaled := func(e int) float32 { return float32(math.Ldexp(1+rng.Float64(), e)) }
	x, y = scaled(rng.IntN(40)-20), scaled(rng.IntN(40)-20)
	p := float64(x) * float64(y)
	switch rng.IntN(5) {
	case 0:
		return bits(), bits(), bits()
	case 1: // z is near -p: what is left is the tail of the product
		return x, y, -math.Float32frombits(math.Float32bits(float32(p)) + rng.Uint32N(5) - 2)
	case 2: // the sum is a halfway point plus or minus a sliver far below
		x, y = float32(1+float64(1+2*rng.IntN(1<<11))*0x1p-12), float32(1+float64(1+2*rng.IntN(1<<11))*0x1p-12)
		return x, y, float32(math.Ldexp(float64(1-2*rng.IntN(2)), -rng.IntN(80)-20))
	case 3: // a big z and a product that decides a tie
		return float32(math.Ldexp(1+float64(rng.IntN(3))*0x1p-23, -12)), float32(math.Ldexp(1, -12)), scaled(0)
	}
	shift := -rng.IntN(12) - 58 // around 2^-126 and below
	return float32(math.Ldexp(float64(x), shift)), float32(math.Ldexp(float64(y), shift-3)), float32(math.Ldexp(float64(bits()), -150) * 0x1p24)
}

func TestFMAHalfway(t *testing.T) {
	const ulp = 0x1p-23
	for _, c := range []struct{ x, y, z, want float32 }{
		{0x1p-12, 0x1p-12, 1, 1},                                // a tie, to even
		{0x1p-12, 0x1p-12, 1 + ulp, 1 + 2*ulp},                  // a tie, up to even
		{0x1p-12 + 0x1p-35, 0x1p-12, 1, 1 + ulp},                // a sliver above the tie
		{0x1p-12 - 0x1p-36, 0x1p-12, 1 + ulp, 1 + ulp},          // a sliver below it
		{1 + ulp, 1 + ulp, -1 - 2*ulp, 0x1p-46},                 // nothing but the tail
		{0x1p-75, 0x1p-75, 0x1p-126, 0x1p-126},                  // subnormal sliver, dropped
		{0x1p-75, 0x1p-75, 0x1p-149, 0x1p-148},                  // a subnormal tie, to even
		{float32(math.Inf(1)), 0, 1, float32(math.NaN())},       // invalid
		{math.MaxFloat32, 1, 0x1p103, float32(math.Inf(1))},     // overflows by rounding
		{math.MaxFloat32, 2, -math.MaxFloat32, math.MaxFloat32}, // the product alone would overflow
		{-0x1p-80, 0x1p-80, 0, float32(math.Copysign(0, -1))},   // underflows to its own zero
	} {
		if got := FMA(c.x, c.y, c.z); !same(got, c.want) || !same(exactFMA(c.x, c.y, c.z), c.want) {
			t.Errorf("FMA(%x, %x, %x) = %x, by integers %x, want %x", c.x, c.y, c.z, got, exactFMA(c.x, c.y, c.z), c.want)
		}
	}
}

func TestFMACatchesDoubleRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		x, y, z := hardTriple(rng)
		twice := float32(math.FMA(float64(x), float64(y), float64(z)))
		if !same(twice, exactFMA(x, y, z)) {
			return
		}
	}
	t.Fatal("the triples never tell one rounding from two")
}

func TestExpAndLogAreClose(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		x := float32(rng.Float64()*175 - 87)
		if got, want := float64(Exp(x)), math.Exp(float64(x)); math.Abs(got-want) > 3e-7*want {
			t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
		}
		y := float32(math.Exp(rng.Float64()*170 - 85))
		if got, want := float64(Log(y)), math.Log(float64(y)); math.Abs(got-want) > 1.2e-7*math.Abs(want)+2e-9 {
			t.Fatalf("Log(%v) = %v, want %v", y, got, want)
		}
	}
}

func TestFixedPoints(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"exp 0", Exp(0), 1},
		{"exp -0", Exp(float32(math.Copysign(0, -1))), 1},
		{"exp -inf", Exp(-inf), Exp(-87)},
		{"exp inf", Exp(inf), Exp(88)},
		{"exp nan", Exp(nan), nan},
		{"exp 1", Exp(1), math.Float32frombits(0x402df854)},
		{"log 1", Log(1), 0},
		{"log 2", Log(2), math.Float32frombits(0x3f317218)},
		{"log 0", Log(0), -inf},
		{"log subnormal", Log(0x1p-130), -inf},
		{"log -1", Log(-1), nan},
		{"log inf", Log(inf), inf},
		{"log nan", Log(nan), nan},
		{"sigmoid 0", Sigmoid(0), 0.5},
		{"silu 0", SiLU(0), 0},
		{"flush", Flush(-0x1p-127), float32(math.Copysign(0, -1))},
		{"flush least normal", Flush(0x1p-126), 0x1p-126},
	} {
		if !same(c.got, c.want) {
			t.Errorf("%s = %x, want %x", c.name, c.got, c.want)
		}
	}
}

func TestHalfFormats(t *testing.T) {
	for h := range 1 << 16 {
		x := WidenBF16(uint16(h))
		if back := RoundBF16(x); back != uint16(h) && back != uint16(h)|0x40 {
			t.Fatalf("bf16 %04x widens to %x and rounds to %04x", h, x, back)
		}
		sign, e, m := 1-2*float64(h>>15), h>>10&31, float64(h&1023)
		want := sign * (1024 + m) * math.Ldexp(1, e-25)
		switch {
		case e == 0:
			want = math.Copysign(m*0x1p-24, sign)
		case e == 31 && m == 0:
			want = math.Inf(int(sign))
		case e == 31:
			want = math.NaN()
		}
		if got := WidenF16(uint16(h)); !same(got, float32(want)) {
			t.Fatalf("f16 %04x widens to %x, want %x", h, got, want)
		}
	}
	for _, c := range []struct {
		x    float32
		want uint16
	}{
		{math.Float32frombits(0x3f808000), 0x3f80}, // tie, to even
		{math.Float32frombits(0x3f818000), 0x3f82},
		{math.Float32frombits(0x3f808001), 0x3f81},
		{math.MaxFloat32, 0x7f80},
		{math.Float32frombits(0xff800001), 0xffc0}, // a NaN whose payload would vanish
	} {
		if got := RoundBF16(c.x); got != c.want {
			t.Errorf("RoundBF16(%x) = %04x, want %04x", c.x, got, c.want)
		}
	}
}

func BenchmarkFMA(b *testing.B) {
	acc := float32(0)
	for i := range b.N {
		acc = FMA(float32(i), 0x1.234p-20, acc)
	}
	sink = acc
}

var sink float32
