package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tfbatch/internal/backend"
)

// assembly are the kernels of this machine that are not plain Go.
func assembly() []*kernels {
	all := available()
	return all[:len(all)-1]
}

// TestFMAIsTheHardwares compares backend.FMA with the instruction: random bits, and sums drawn
// so that they land on or beside the points halfway between two floats.
func TestFMAIsTheHardwares(t *testing.T) {
	triples := 100_000_000 / max(len(assembly()), 1)
	if testing.Short() {
		triples = 1_000_000
	}
	rng := rand.New(rand.NewPCG(5, 6))
	const block = 1 << 14
	x, y, z, sum := make([]float32, block), make([]float32, block), make([]float32, block), make([]float32, block)
	for _, k := range assembly() {
		for done := 0; done < triples; done += block {
			for i := range x {
				x[i], y[i], z[i] = triple(rng)
			}
			copy(sum, z)
			k.vector.tap(sum, x, y)
			for i, want := range sum {
				if got := backend.FMA(x[i], y[i], z[i]); !same(got, want) {
					t.Fatalf("%v: FMA(%x, %x, %x) = %x, the instruction says %x", k.isa, x[i], y[i], z[i], got, want)
				}
			}
		}
	}
}

// triple draws the operands of an fma, half of them from any bits at all.
func triple(rng *rand.Rand) (x, y, z float32) {
	a, b := rng.Uint64(), rng.Uint64()
	x, y, z = math.Float32frombits(uint32(a)), math.Float32frombits(uint32(a>>32)), math.Float32frombits(uint32(b))
	if b>>63 == 0 {
		return x, y, z
	}
	// 12 significant bits each, so that the product has 24 at most, and a z far above or below
	// it: ties and near ties are then common.
	clip := func(f float32) float32 {
		return math.Float32frombits(math.Float32bits(f)&0x807ff000 | (117+math.Float32bits(f)&15)<<23)
	}
	x, y = clip(x), clip(y)
	scale := math.Float32frombits((127 + uint32(b>>33)%64 - 32) << 23)
	return x, y, math.Float32frombits(uint32(b)&0x807fff81|127<<23) * x * y * scale
}

func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// TestVectorsGiveTheBitsOfGo runs every elementwise kernel on arbitrary bits beside its plain version.
func TestVectorsGiveTheBitsOfGo(t *testing.T) {
	const n = 1024
	rounds := 200
	if testing.Short() {
		rounds = 10
	}
	rng := rand.New(rand.NewPCG(8, 9))
	draw := func(mild bool) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(rng.Uint32())
			if mild {
				x[i] = float32(rng.NormFloat64() * 20)
			}
		}
		return x
	}
	ops := map[string]func(k *kernels, a, b, c, d []float32, s float32){
		"squares": func(k *kernels, a, b, _, _ []float32, _ float32) { k.vector.squares((*[squareChains]float32)(a), b) },
		"scale":   func(k *kernels, a, b, c, _ []float32, s float32) { k.vector.scale(a, b, c, s) },
		"add":     func(k *kernels, a, b, c, _ []float32, _ float32) { k.vector.add(a, b, c) },
		"mul":     func(k *kernels, a, b, c, _ []float32, _ float32) { k.vector.mul(a, b, c) },
		"axpy":    func(k *kernels, a, b, _, _ []float32, s float32) { k.vector.axpy(a, b, s) },
		"tap":     func(k *kernels, a, b, c, _ []float32, _ float32) { k.vector.tap(a, b, c) },
		"rotate":  func(k *kernels, a, b, c, d []float32, _ float32) { k.vector.rotate(a, b, c, d) },
		"swiglu":  func(k *kernels, a, b, c, _ []float32, _ float32) { k.vector.swiglu(a, b, c) },
		"sigmoid": func(k *kernels, a, b, _, _ []float32, _ float32) { k.vector.sigmoid(a, b) },
		"expSub":  func(k *kernels, a, _, _, _ []float32, s float32) { k.vector.expSub(a, s) },
		"merge":   func(k *kernels, a, b, _, _ []float32, s float32) { k.vector.merge(a, b, s, b[0]) },
		"divide":  func(k *kernels, a, b, _, _ []float32, s float32) { k.vector.divide(a, b, s) },
		"maximum": func(k *kernels, a, b, _, _ []float32, _ float32) {
			for i, x := range b { // it promises nothing about NaN
				if x != x {
					b[i] = 0
				}
			}
			a[0] = k.vector.maximum(b[:16+16*(int(math.Float32bits(b[0]))%60)])
		},
	}
	plain := portable()
	for _, k := range assembly() {
		for name, op := range ops {
			t.Run(fmt.Sprintf("%v/%s", k.isa, name), func(t *testing.T) {
				for round := range rounds {
					mild := round%2 == 0
					a, b, c, d := draw(mild), draw(mild), draw(mild), draw(mild)
					a2, b2 := append([]float32(nil), a...), append([]float32(nil), b...)
					op(k, a, b, c, d, c[1])
					op(plain, a2, b2, c, d, c[1])
					for i := range a {
						if !same(a[i], a2[i]) || !same(b[i], b2[i]) {
							t.Fatalf("value %d: %x and %x, want %x and %x", i, a[i], b[i], a2[i], b2[i])
						}
					}
				}
			})
		}
	}
}
