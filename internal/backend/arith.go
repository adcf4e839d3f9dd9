package backend

import "math"

// The scalar functions of ARITHMETIC.md. They are the definition: a device may compute them
// in any way that gives these bits. A NaN is a NaN whatever its payload.

// FMA returns x·y + z rounded once.
func FMA(x, y, z float32) float32 {
	p := float64(x) * float64(y) // exact: 48 bits of product fit in 53
	s := float64(p) + float64(z)
	if b := math.Float64bits(s); b&lowBits != halfway && b<<1-leastFast < spanFast {
		return float32(s)
	}
	return float32(roundToOdd(p, float64(z), s))
}

// FMAEach sets every sum_i to FMA(w_i, x, sum_i), for the inner loops of devices without the instruction.
func FMAEach(sum, w []float32, x float32) {
	w = w[:len(sum)]
	for i, z := range sum {
		p := float64(w[i]) * float64(x)
		s := float64(p) + float64(z)
		if b := math.Float64bits(s); b&lowBits != halfway && b<<1-leastFast < spanFast {
			sum[i] = float32(s)
			continue
		}
		sum[i] = float32(roundToOdd(p, float64(z), s))
	}
}

// Rounding a float64 sum again to float32 is safe unless it lies halfway between two of them,
// or is so small that the result is subnormal. The fast path also leaves zeros, infinities and NaNs out.
const (
	lowBits   = 1<<29 - 1
	halfway   = 1 << 28
	leastFast = (1023 - 126) << 53 // the exponent of 2^-126, with the sign shifted out
	spanFast  = 253 << 53
)

// roundToOdd turns s = p+z, rounded to nearest, into the sum rounded to odd, which
// keeps enough of what was lost for a second rounding to be the right one.
func roundToOdd(p, z, s float64) float64 {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return s
	}
	b := float64(s - p)
	lost := float64(float64(p-float64(s-b)) + float64(z-b)) // Knuth's two-sum: s+lost is exact
	bits := math.Float64bits(s)
	if lost == 0 || bits&1 == 1 {
		return s
	}
	if (lost > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// Exp returns e^x for x clamped to [-87, 88]; Exp(0) is exactly 1.
func Exp(x float32) float32 {
	if x < -87 {
		x = -87
	}
	if x > 88 {
		x = 88
	}
	n := float32(math.RoundToEven(float64(float32(x * log2e))))
	r := FMA(n, -ln2High, x)
	r = FMA(n, -ln2Low, r)
	p := float32(1.0 / 720)
	for _, c := range [...]float32{1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		p = FMA(p, r, c)
	}
	if p != p {
		return p
	}
	return float32(p * math.Float32frombits(uint32(int32(n)+127)<<23)) // exact: the result is normal
}

const (
	log2e   = 1.44269504
	ln2High = 0.693145752 // its low bits are zero: n·ln2High is exact
	ln2Low  = 1.42860677e-6
)

// Log returns the natural logarithm of x; a subnormal x counts as zero.
func Log(x float32) float32 {
	x = Flush(x)
	switch {
	case x != x || x < 0:
		return float32(math.NaN())
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	}
	bits := math.Float32bits(x)
	// m in [√½, √2): the offset moves the border of the exponent field to √½.
	shifted := bits - sqrtHalfBits
	n := float32(int32(shifted) >> 23)
	m := math.Float32frombits(shifted&(1<<23-1) + sqrtHalfBits)
	f := float32(m - 1)
	z := float32(f * f)
	p := float32(logPoly[0])
	for _, c := range logPoly[1:] {
		p = FMA(p, f, c)
	}
	y := float32(float32(p*f) * z)
	y = FMA(n, -logLow, y)
	y = FMA(-0.5, z, y)
	return FMA(n, logHigh, float32(f+y))
}

const (
	sqrtHalfBits = 0x3f3504f3
	logHigh      = 0.693359375 // ln 2 in 9 bits: n·logHigh is exact
	logLow       = 2.12194440e-4
)

// The minimax polynomial of Cephes' logf for log(1+f) = f - f²/2 + f³·P(f).
var logPoly = [...]float32{
	7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
	-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
}

// Sigmoid returns 1 / (1 + Exp(-x)), flushed: below -87.3 it would be subnormal.
func Sigmoid(x float32) float32 { return Flush(1 / float32(1+Exp(-x))) }

// SiLU returns x / (1 + Exp(-x)).
func SiLU(x float32) float32 { return x / float32(1+Exp(-x)) }

// Flush returns x, or the zero of its sign where x is subnormal.
func Flush(x float32) float32 {
	bits := math.Float32bits(x)
	if bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & 0x80000000)
	}
	return x
}

// WidenBF16 returns the value of a bfloat16.
func WidenBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// RoundBF16 returns x as the nearest bfloat16, ties to even; a NaN stays one and quiet.
func RoundBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// WidenF16 returns the value of an IEEE binary16; its subnormals are normal float32.
func WidenF16(h uint16) float32 {
	sign, magnitude := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case magnitude >= 0x7c00: // infinity, NaN
		bits := sign | 0x7f800000 | magnitude<<13&0x7fffff
		if magnitude > 0x7c00 {
			bits |= 0x400000
		}
		return math.Float32frombits(bits)
	case magnitude < 0x400: // zero, subnormal
		return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-24))
	}
	return math.Float32frombits(sign | (magnitude<<13 + 112<<23))
}
