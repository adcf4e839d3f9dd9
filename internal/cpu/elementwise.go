package cpu

import "tfbatch/internal/backend"

// The elementwise operations for any length: the kernel takes whole vectors, plain Go what is left.

func bulk(n int) int { return n &^ (lanes - 1) }

func (k *kernels) scale(dst, x, gain []float32, r float32) {
	n := bulk(len(dst))
	k.vector.scale(dst[:n], x, gain, r)
	scale(dst[n:], x[n:], gain[n:], r)
}

func (k *kernels) add(dst, a, b []float32) {
	n := bulk(len(dst))
	k.vector.add(dst[:n], a, b)
	add(dst[n:], a[n:], b[n:])
}

func (k *kernels) mul(dst, a, b []float32) {
	n := bulk(len(dst))
	k.vector.mul(dst[:n], a, b)
	mul(dst[n:], a[n:], b[n:])
}

func (k *kernels) axpy(sum, x []float32, a float32) {
	n := bulk(len(sum))
	k.vector.axpy(sum[:n], x, a)
	axpy(sum[n:], x[n:], a)
}

func (k *kernels) tap(sum, w, u []float32) {
	n := bulk(len(sum))
	k.vector.tap(sum[:n], w, u)
	tap(sum[n:], w[n:], u[n:])
}

func (k *kernels) rotate(a, b, cos, sin []float32) {
	n := bulk(len(a))
	k.vector.rotate(a[:n], b, cos, sin)
	rotate(a[n:], b[n:], cos[n:], sin[n:])
}

func (k *kernels) swiglu(dst, g, u []float32) {
	n := bulk(len(dst))
	k.vector.swiglu(dst[:n], g, u)
	swiglu(dst[n:], g[n:], u[n:])
}

func (k *kernels) sigmoid(dst, x []float32) {
	n := bulk(len(dst))
	k.vector.sigmoid(dst[:n], x)
	sigmoid(dst[n:], x[n:])
}

func (k *kernels) expSub(x []float32, m float32) {
	n := bulk(len(x))
	k.vector.expSub(x[:n], m)
	expSub(x[n:], m)
}

func (k *kernels) divide(dst, x []float32, d float32) {
	n := bulk(len(dst))
	k.vector.divide(dst[:n], x, d)
	divide(dst[n:], x[n:], d)
}

// inverseNorm is 1/√(mean square of x + eps); sums is scratch.
func (k *kernels) inverseNorm(sums *[squareChains]float32, x []float32, eps float32) float32 {
	*sums = [squareChains]float32{}
	n := len(x) &^ (squareChains - 1)
	k.vector.squares(sums, x[:n])
	for j, v := range x[n:] {
		sums[j] = backend.FMA(v, v, sums[j])
	}
	for s := squareChains / 2; s > 0; s /= 2 {
		for j := range s {
			sums[j] += sums[j+s]
		}
	}
	mean := sums[0] / float32(len(x))
	return 1 / sqrt(mean+eps)
}
