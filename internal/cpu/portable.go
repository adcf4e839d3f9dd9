package cpu

import (
	"encoding/binary"
	"math"
	"runtime"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// portable is the table of plain Go: the truth that assembly is held to.
func portable() *kernels {
	k := &kernels{isa: Portable, vector: vector{
		squares: squares, scale: scale, add: add, mul: mul, axpy: axpy, tap: tap, rotate: rotate, swiglu: swiglu,
		sigmoid: sigmoid, maximum: maximum, expSub: expSub, merge: merge, divide: divide,
	}, read: readPortable, peak: peakPortable,
		magnitude: backend.Magnitude, codes: codesPortable, dotPeak: dotPeakPortable}
	for i := range k.tiles {
		k.tiles[i].rows = maxRows
		for rows := 1; rows <= maxRows; rows++ {
			k.tiles[i].narrow[rows] = tilePortable
		}
	}
	for i := range k.affine {
		k.affine[i].rows = maxRows
		for rows := 1; rows <= maxRows; rows++ {
			k.affine[i].narrow[rows] = affineTilePortable
		}
		k.dot[i] = k.affine[i]
		for rows := range maxRows {
			k.dot[i].narrow[rows+1] = dotTilePortable
		}
	}
	for i := range k.attention {
		for queries := 1; queries <= maxGroup; queries++ {
			k.attention[i].scores[queries] = scoresPortable
			k.attention[i].values[queries] = valuesPortable
		}
	}
	return k
}

func tilePortable(t *tile) {
	var sums [maxChains][panelRows]float32
	for p := range t.panels {
		panel := unsafe.Slice((*byte)(unsafe.Add(t.weights, p*t.stride)), t.stride)
		for r := range t.rows {
			x := unsafe.Slice(t.x[r], t.cols)
			dst := unsafe.Slice(t.dst[r], (p+1)*panelRows)[p*panelRows:]
			clear(sums[:])
			for u := 0; u*unit < t.cols; u++ {
				unitPortable(&sums[u%t.chains], x, panel, t.format.Kind, u*unit, min((u+1)*unit, t.cols))
			}
			fold(dst, &sums, t.chains)
		}
	}
}

// unitPortable adds inputs from..to-1 to one chain of the 16 outputs of a panel.
func unitPortable(sum *[panelRows]float32, x []float32, panel []byte, kind quant.Kind, from, to int) {
	var w [panelRows]float32
	for k := from; k < to; k++ {
		widenLanes(&w, kind, panel, k)
		backend.FMAEach(sum[:], w[:], x[k])
	}
}

// widenLanes is widen for all lanes of input k.
func widenLanes(w *[panelRows]float32, kind quant.Kind, panel []byte, k int) {
	if kind != quant.BF16 {
		for lane := range w {
			w[lane] = widen(kind, panel, k, lane)
		}
		return
	}
	pairs := panel[k/2*4*panelRows:][:4*panelRows]
	for lane := range w {
		w[lane] = backend.WidenBF16(binary.LittleEndian.Uint16(pairs[4*lane+k%2*2:]))
	}
}

// fold adds the upper half of the chains to the lower one until one is left.
func fold(dst []float32, sums *[maxChains][panelRows]float32, chains int) {
	for s := chains / 2; s > 0; s /= 2 {
		for c := range s {
			for lane := range panelRows {
				sums[c][lane] += sums[c+s][lane]
			}
		}
	}
	for lane := range dst {
		dst[lane] = backend.Flush(sums[0][lane])
	}
}

func scoresPortable(a *attention) {
	for i := range a.queries {
		q := unsafe.Slice(a.q, (i+1)*a.dim)[i*a.dim:]
		s := unsafe.Slice(a.s, (i+1)*backend.PageKeys)[i*backend.PageKeys:]
		for key := range a.keys {
			sum := float32(0)
			for d, x := range q {
				sum = backend.FMA(x, a.element(a.k, d*backend.PageKeys+key), sum)
			}
			s[key] = float32(sum * a.scale)
		}
	}
}

func valuesPortable(a *attention) {
	for i := range a.queries {
		p := unsafe.Slice(a.s, i*backend.PageKeys+a.keys)[i*backend.PageKeys:]
		o := unsafe.Slice(a.o, (i+1)*a.width)[i*a.width:]
		clear(o)
		l := float32(0)
		for key, weight := range p {
			l += weight
			for d := range o {
				o[d] = backend.FMA(weight, a.element(a.v, key*a.width+d), o[d])
			}
		}
		unsafe.Slice(a.l, i+1)[i] = l
	}
}

// element is value i of a page.
func (a *attention) element(page unsafe.Pointer, i int) float32 {
	if a.f32 {
		return *(*float32)(unsafe.Add(page, i*4))
	}
	return backend.WidenBF16(*(*uint16)(unsafe.Add(page, i*2)))
}

func squares(sums *[squareChains]float32, x []float32) {
	for k, v := range x {
		j := k % squareChains
		sums[j] = backend.FMA(v, v, sums[j])
	}
}

func scale(dst, x, gain []float32, r float32) {
	for i := range dst {
		dst[i] = backend.Flush(float32(x[i]*r) * gain[i])
	}
}

func add(dst, a, b []float32) {
	for i := range dst {
		dst[i] = backend.Flush(a[i] + b[i])
	}
}

func mul(dst, a, b []float32) {
	for i := range dst {
		dst[i] = backend.Flush(a[i] * b[i])
	}
}

func axpy(sum, x []float32, a float32) { backend.FMAEach(sum, x, a) }

func tap(sum, w, u []float32) {
	for i := range sum {
		sum[i] = backend.FMA(w[i], u[i], sum[i])
	}
}

func rotate(a, b, cos, sin []float32) {
	for i, x := range a {
		y := b[i]
		a[i] = backend.Flush(backend.FMA(-y, sin[i], float32(x*cos[i])))
		b[i] = backend.Flush(backend.FMA(x, sin[i], float32(y*cos[i])))
	}
}

func swiglu(dst, g, u []float32) {
	for i := range dst {
		dst[i] = backend.Flush(backend.SiLU(g[i]) * u[i])
	}
}

func sigmoid(dst, x []float32) {
	for i := range dst {
		dst[i] = backend.Sigmoid(x[i])
	}
}

func maximum(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func expSub(x []float32, m float32) {
	for i := range x {
		x[i] = backend.Exp(x[i] - m)
	}
}

func merge(sum, part []float32, a, b float32) {
	for i := range sum {
		sum[i] = backend.FMA(sum[i], a, float32(part[i]*b))
	}
}

func divide(dst, x []float32, d float32) {
	for i := range dst {
		dst[i] = backend.Flush(x[i] / d)
	}
}

func readPortable(p unsafe.Pointer, bytes int) {
	sum := uint64(0)
	for _, x := range unsafe.Slice((*uint64)(p), bytes/8) {
		sum += x
	}
	runtime.KeepAlive(sum)
}

func peakPortable(turns int) (fma int) {
	var sums [panelRows]float32
	for range turns {
		for i := range sums {
			sums[i] = backend.FMA(0x1p-20, 0x1p-20, sums[i])
		}
	}
	runtime.KeepAlive(&sums)
	return panelRows
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func float32frombits(b uint32) float32 { return math.Float32frombits(b) }
