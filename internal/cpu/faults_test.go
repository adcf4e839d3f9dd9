package cpu

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
)

// TestFaultsAreSeen plants one wrong order after another in the kernels; the suite must see
// each of them in the checks that are named for it.
func TestFaultsAreSeen(t *testing.T) {
	for _, f := range []struct {
		name, seen string // seen: the start of a check's name
		plant      func(k *kernels)
	}{
		{"chains swapped", "matmul/bf16", func(k *kernels) { plantTile(k, func(t *tile) { t.chains = max(t.chains/2, 1) }) }},
		{"eight chains for seven units", "matmul/f32/inputs", func(k *kernels) {
			plantTile(k, func(t *tile) {
				if t.cols == 400 {
					t.chains = 8
				}
			})
		}},
		{"chains of codes swapped", "matmul/affine3", func(k *kernels) { plantTile(k, func(t *tile) { t.chains = max(t.chains/2, 1) }) }},
		{"a row of codes reads its neighbour", "matmul/affine8/32", func(k *kernels) { plantTile(k, func(t *tile) { t.x[t.rows-1] = t.x[0] }) }},
		{"a row reads its neighbour", "matmul/f16/rows", func(k *kernels) { plantTile(k, func(t *tile) { t.x[t.rows-1] = t.x[0] }) }},
		{"an input's code is one off", "int8/matmul/affine4/32", func(k *kernels) {
			k.codes = func(dst []int32, x []float32, r float32) {
				for i, v := range x {
					dst[i] = int32(math.Round(float64(v * r))) // ties away from zero
					if dst[i] == 3 {
						dst[i]++
					}
				}
			}
		}},
		{"a step by another division", "int8/matmul/affine2", func(k *kernels) {
			plantDots(k, func(t *tile) {
				size := byFours.size(t.format.Group)
				step := &unsafe.Slice(t.x[0], size)[size-2]
				*step = float32(*step * (1 + 0x1p-23))
			})
		}},
		{"no units of zeros", "int8/matmul/affine8/128 f16/border", func(k *kernels) {
			k.magnitude = func(x []float32) uint32 { return max(backend.Magnitude(x), math.Float32bits(0x1p-99)) }
		}},
		{"an expert's row reads its neighbour", "int8/experts", func(k *kernels) { plantDots(k, func(t *tile) { t.x[t.rows-1] = t.x[0] }) }},
		{"norm in 16 chains", "rms norm", func(k *kernels) {
			k.vector.squares = func(sums *[squareChains]float32, x []float32) {
				for i, v := range x {
					sums[i%16] = backend.FMA(v, v, sums[i%16])
				}
			}
		}},
		{"gain before the factor", "rms norm", func(k *kernels) {
			k.vector.scale = func(dst, x, gain []float32, r float32) {
				for i := range dst {
					dst[i] = backend.Flush(float32(x[i]*gain[i]) * r)
				}
			}
		}},
		{"subnormals kept", "add", func(k *kernels) {
			k.vector.add = func(dst, a, b []float32) {
				for i := range dst {
					dst[i] = a[i] + b[i]
				}
			}
		}},
		{"product rounded in the tap", "short conv", func(k *kernels) {
			k.vector.tap = func(sum, w, u []float32) {
				for i := range sum {
					sum[i] += float32(w[i] * u[i])
				}
			}
		}},
		{"rope by another fma", "attention", func(k *kernels) {
			k.vector.rotate = func(a, b, cos, sin []float32) {
				for i, x := range a {
					a[i] = backend.FMA(x, cos[i], -float32(b[i]*sin[i]))
					b[i] = backend.FMA(b[i], cos[i], float32(x*sin[i]))
				}
			}
		}},
		{"library exp", "swiglu", func(k *kernels) {
			k.vector.swiglu = func(dst, g, u []float32) {
				for i := range dst {
					dst[i] = backend.Flush(g[i] / float32(1+float32(math.Exp(float64(-g[i])))) * u[i])
				}
			}
		}},
		{"weights summed from the end", "attention/bf16", func(k *kernels) {
			for n := 1; n <= maxGroup; n++ {
				k.attention[0].values[n] = func(a *attention) {
					valuesPortable(a)
					l := float32(0)
					for _, p := range slices.Backward(weightsOf(a)) {
						l += p
					}
					*a.l = l
				}
			}
		}},
		{"pages merged by multiply and add", "attention/f32/pages", func(k *kernels) {
			k.vector.merge = func(sum, part []float32, a, b float32) {
				for i := range sum {
					sum[i] = float32(sum[i]*a) + float32(part[i]*b)
				}
			}
		}},
		{"experts combined by multiply and add", "experts", func(k *kernels) {
			k.vector.axpy = func(sum, x []float32, a float32) {
				for i := range sum {
					sum[i] += float32(a * x[i])
				}
			}
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			failed := backendtest.Failures(t, func(t testing.TB) backend.Device {
				k := portable()
				f.plant(k)
				return &Device{kernels: k, pool: newPool(1), int8: strings.HasPrefix(f.seen, "int8/")}
			}, f.seen)
			if len(failed) == 0 {
				t.Errorf("no check of %s failed", f.seen)
			}
		})
	}
}

func plantTile(k *kernels, fault func(*tile)) {
	for i := range k.tiles {
		for rows := 1; rows <= maxRows; rows++ {
			k.tiles[i].narrow[rows] = func(t *tile) {
				fault(t)
				tilePortable(t)
			}
		}
	}
	for bits := range k.affine {
		for rows := 1; rows <= maxRows; rows++ {
			k.affine[bits].narrow[rows] = func(t *tile) {
				fault(t)
				affineTilePortable(t)
			}
		}
	}
}

func plantDots(k *kernels, fault func(*tile)) {
	for bits := range k.dot {
		for rows := 1; rows <= maxRows; rows++ {
			k.dot[bits].narrow[rows] = func(t *tile) {
				fault(t)
				dotTilePortable(t)
			}
		}
	}
}

// weightsOf is the weights of the first query.
func weightsOf(a *attention) []float32 { return unsafe.Slice(a.s, a.keys) }
