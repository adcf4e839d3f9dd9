package nn

import "math"

// The functions below are made of IEEE additions, multiplications and divisions alone, each rounded by
// itself: every product is converted before it meets a sum, which forbids the compiler to fuse the two.
// They give the same bits on every machine, which math.Sin and math.Pow do not promise.

// sincos is the sine and the cosine of x, 0 ≤ x ≤ 2^24, within a few units of 2^-53.
// Reduction after Cody and Waite, polynomials after Cephes.
func sincos(x float64) (sin, cos float64) {
	const ( // π/2 in three parts; a multiple of the first two below 2^25 is exact
		half1 = 0x1.921fb4p+00
		half2 = 0x1.4442dp-24
		half3 = 0x1.8469898cc5170p-48
	)
	n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := x - float64(n*half1)
	r = r - float64(n*half2)
	r = r - float64(n*half3)
	s, c := sinPoly(r), cosPoly(r)
	switch int64(n) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// sinPoly is sin x for |x| ≤ π/4.
func sinPoly(x float64) float64 {
	z := float64(x * x)
	p := horner(z, 1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
		-1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1)
	return x + float64(float64(x*z)*p)
}

// cosPoly is cos x for |x| ≤ π/4.
func cosPoly(x float64) float64 {
	z := float64(x * x)
	p := horner(z, -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
		2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2)
	return 1 - float64(0.5*z) + float64(float64(z*z)*p)
}

func horner(x float64, coefficients ...float64) float64 {
	sum := 0.0
	for _, c := range coefficients {
		sum = float64(sum*x) + c
	}
	return sum
}

// ln is the natural logarithm of x ≥ 1: the exponent's share plus 2·artanh of what is left.
func ln(x float64) float64 {
	m, e := math.Frexp(x) // m in [1/2, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	t := (m - 1) / (m + 1) // |t| ≤ 0.172
	z := float64(t * t)
	p := horner(z, 1./21, 1./19, 1./17, 1./15, 1./13, 1./11, 1./9, 1./7, 1./5, 1./3, 1)
	return float64(float64(e)*math.Ln2) + float64(float64(2*t)*p)
}

// exp is e^x for -700 ≤ x ≤ 0.
func exp(x float64) float64 {
	const ( // ln 2 in two parts
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(n*ln2Hi)
	r = r - float64(n*ln2Lo) // |r| ≤ 0.347
	p := horner(r, 1./6227020800, 1./479001600, 1./39916800, 1./3628800, 1./362880, 1./40320, 1./5040, 1./720, 1./120, 1./24, 1./6, 0.5, 1, 1)
	return math.Ldexp(p, int(n))
}
