package contract

import (
	"math"

	"tfbatch/internal/backend"
)

// The contract as plainly as it can be written: one value at a time.

// dot is one output of a matrix product with a dense weight.
func dot(w, x []float32) float32 {
	const unit = 64
	acc := make([]float32, chains(len(x), unit))
	for k := range x {
		c := k / unit % len(acc)
		acc[c] = backend.FMA(w[k], x[k], acc[c])
	}
	return fold(acc)
}

// dotAffine is one output of a product with an affine weight.
func dotAffine(codes []uint8, scales, biases []float32, x []float32) float32 {
	unit := len(x) / len(scales)
	acc := make([]float32, chains(len(x), unit))
	for u := range scales {
		a, sum := float32(0), float32(0)
		for k := u * unit; k < (u+1)*unit; k++ {
			a = backend.FMA(float32(codes[k]), x[k], a)
			sum = float32(sum + x[k])
		}
		c := u % len(acc)
		acc[c] = backend.FMA(scales[u], a, acc[c])
		acc[c] = backend.FMA(biases[u], sum, acc[c])
	}
	return fold(acc)
}

// dotInt8 is one output of a product with an affine weight in the arithmetic of I8.md.
func dotInt8(codes []uint8, scales, biases []float32, x []float32) float32 {
	unit, acc := len(x)/len(scales), float32(0)
	for u := range scales {
		from, to := u*unit, (u+1)*unit
		inputs, d, s := roundInt8(x[from:to])
		i := 0
		for k, c := range inputs {
			i += int(codes[from+k]) * c
		}
		t, b := float32(float32(i)*d), float32(d*float32(s))
		acc = backend.FMA(scales[u], t, acc)
		acc = backend.FMA(biases[u], b, acc)
	}
	return backend.Flush(acc)
}

// roundInt8 is a unit of inputs as codes, their step and their sum.
func roundInt8(x []float32) (codes []int, d float32, sum int) {
	codes = make([]int, len(x))
	m := 0.0
	for _, v := range x {
		m = max(m, math.Abs(float64(v))) // a NaN sticks
	}
	switch {
	case math.IsNaN(m) || math.IsInf(m, 0):
		return codes, float32(math.NaN()), 0
	case m < 0x1p-100:
		return codes, 0, 0
	}
	d, r := float32(m)/127, 127/float32(m)
	for k, v := range x {
		codes[k] = int(math.RoundToEven(float64(float32(v * r))))
		sum += codes[k]
	}
	return codes, d, sum
}

// chains is how many sums a product of k inputs in units has.
func chains(k, unit int) int {
	units, s := (k+unit-1)/unit, 1
	for s < 8 && units >= 2*s {
		s *= 2
	}
	return s
}

// fold adds the chains up.
func fold(acc []float32) float32 {
	for s := len(acc) / 2; s >= 1; s /= 2 {
		for c := range s {
			acc[c] = float32(acc[c] + acc[c+s])
		}
	}
	return backend.Flush(acc[0])
}

// norm is RMSNorm of x.
func norm(x, gain []float32, eps float32) []float32 {
	var acc [32]float32
	for k, v := range x {
		acc[k%32] = backend.FMA(v, v, acc[k%32])
	}
	for _, s := range []int{16, 8, 4, 2, 1} {
		before := acc
		for j := range acc {
			acc[j] = float32(before[j] + before[j^s])
		}
	}
	mean := float32(acc[0] / float32(len(x)))
	r := float32(1 / float32(math.Sqrt(float64(float32(mean+eps)))))
	y := make([]float32, len(x))
	for k, v := range x {
		y[k] = backend.Flush(float32(float32(v*r) * gain[k]))
	}
	return y
}

// rope turns the pairs of x by row rope: cosines, then sines.
func rope(x, rope []float32, pairing backend.Pairing) []float32 {
	half := len(x) / 2
	y := make([]float32, len(x))
	for i := range half {
		a, b := i, i+half
		if pairing == backend.Interleaved {
			a, b = 2*i, 2*i+1
		}
		c, s := rope[i], rope[half+i]
		y[a] = backend.Flush(backend.FMA(-x[b], s, float32(x[a]*c)))
		y[b] = backend.Flush(backend.FMA(x[a], s, float32(x[b]*c)))
	}
	return y
}

// attend is the attention of one query head over keys and values, oldest first.
func attend(q []float32, keys, values [][]float32) []float32 {
	scale := float32(1 / math.Sqrt(float64(len(q))))
	var m, l float32
	var o []float32
	for from := 0; from < len(keys); from += 256 {
		to := min(from+256, len(keys))
		m2, l2, o2 := attendChunk(q, keys[from:to], values[from:to], scale)
		if from == 0 {
			m, l, o = m2, l2, o2
			continue
		}
		top := max(m, m2)
		a, b := backend.Exp(float32(m-top)), backend.Exp(float32(m2-top))
		m, l = top, backend.FMA(l, a, float32(l2*b))
		for d := range o {
			o[d] = backend.FMA(o[d], a, float32(o2[d]*b))
		}
	}
	for d := range o {
		o[d] = backend.Flush(float32(o[d] / l))
	}
	return o
}

func attendChunk(q []float32, keys, values [][]float32, scale float32) (m, l float32, o []float32) {
	s := make([]float32, len(keys))
	m = float32(math.Inf(-1))
	for i, key := range keys {
		acc := float32(0)
		for d, x := range q {
			acc = backend.FMA(x, key[d], acc)
		}
		s[i] = float32(acc * scale)
		m = max(m, s[i])
	}
	o = make([]float32, len(q))
	for i, value := range values {
		p := backend.Exp(float32(s[i] - m))
		l = float32(l + p)
		for d := range o {
			o[d] = backend.FMA(p, value[d], o[d])
		}
	}
	return m, l, o
}

// bf16 is x as a KV page keeps it.
func bf16(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = backend.WidenBF16(backend.RoundBF16(v))
	}
	return y
}

// convolve is one channel of one row: u holds the inputs of its lane, u[pos] the row's own.
func convolve(u []float32, pos int, taps []float32, bias *float32, gate float32) float32 {
	y := float32(0)
	for j, w := range taps {
		at := pos - (len(taps) - 1) + j
		x := float32(0)
		if at >= 0 {
			x = u[at]
		}
		y = backend.FMA(w, x, y)
	}
	if bias != nil {
		y = backend.Flush(float32(y + *bias))
	}
	return backend.Flush(float32(gate * y))
}

// choose is the routing of one row.
func choose(logits, bias []float32, cfg backend.Router) (experts []int, weights []float32) {
	scores := make([]float32, len(logits))
	order := make([]float32, len(logits))
	for e, x := range logits {
		scores[e] = backend.Sigmoid(x)
		order[e] = scores[e]
		if cfg.Softmax {
			order[e] = x
		}
		if bias != nil {
			order[e] = float32(order[e] + bias[e])
		}
	}
	taken := make([]bool, len(logits))
	for range cfg.TopK {
		best := -1
		for e := range order {
			if !taken[e] && (best < 0 || above(order[e], order[best])) {
				best = e
			}
		}
		taken[best] = true
		experts = append(experts, best)
	}
	if cfg.Softmax {
		return experts, shares(logits, experts, cfg)
	}
	sum := float32(0)
	for _, e := range experts {
		weights = append(weights, scores[e])
		sum = float32(sum + scores[e])
	}
	for i := range weights {
		if cfg.Normalize {
			weights[i] = float32(weights[i] / float32(sum+1e-6))
		}
		weights[i] = backend.Flush(float32(weights[i] * cfg.Scale))
	}
	return experts, weights
}

// shares are the weights of the chosen experts under a softmax.
func shares(logits []float32, experts []int, cfg backend.Router) (weights []float32) {
	share := func(e int) float32 { return backend.Exp(float32(logits[e] - logits[experts[0]])) }
	sum := float32(0)
	if cfg.Normalize {
		for _, e := range experts {
			sum = float32(sum + share(e))
		}
	} else {
		for e := range logits {
			sum = float32(sum + share(e))
		}
	}
	for _, e := range experts {
		weights = append(weights, backend.Flush(float32(float32(share(e)/sum)*cfg.Scale)))
	}
	return weights
}

// above orders scores; a NaN is above every number.
func above(a, b float32) bool { return a > b || a != a && b == b }

// combine is the weighted sum of the experts of one row.
func combine(weights []float32, y [][]float32) []float32 {
	sum := make([]float32, len(y[0]))
	for rank, w := range weights {
		for i := range sum {
			sum[i] = backend.FMA(w, y[rank][i], sum[i])
		}
	}
	for i := range sum {
		sum[i] = backend.Flush(sum[i])
	}
	return sum
}
