package dspark

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model/modeltest"
)

// Tolerances against the float64 reference, with K and V in f32: shares of the largest magnitude, and
// for the confidence, which is a probability, of one.
const (
	scoreTolerance      = 2e-4
	confidenceTolerance = 1e-3
)

func golden(t *testing.T) modeltest.Values {
	t.Helper()
	v, err := modeltest.ReadFile(os.DirFS("testdata"), "golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestGolden compares a round with a graph that was written from the paper in another language: for case i,
// ids_i is a text whose last id is the anchor.
func TestGolden(t *testing.T) {
	want := golden(t)
	r := newRunner(t, 1)
	r.d.least = 0 // whole chains
	for i := 0; want[fmt.Sprintf("ids_%d", i)] != nil; i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) { goldenCase(t, r, want, i) })
	}
}

func goldenCase(t *testing.T, r *runner, want modeltest.Values, i int) {
	of := func(name string) []float64 { return want[fmt.Sprintf("%s_%d", name, i)] }
	ids := want.IDs(fmt.Sprintf("ids_%d", i))
	guesses := want.IDs(fmt.Sprintf("draft_%d", i))
	vocab, block := r.d.cfg.vocab, r.d.cfg.block
	r.d.Open(0, ids)
	defer r.d.Release(0)
	r.forward(span{0, 0, ids[:len(ids)-1]})
	for most := 1; most <= block; most++ {
		a := r.propose(most, 0)[0]
		if !slices.Equal(a.IDs, guesses[:most]) {
			t.Fatalf("%d guesses: %v, want %v", most, a.IDs, guesses[:most])
		}
		near(t, fmt.Sprintf("scores of row %d", most-1), r.d.round.chain.scores, of("logits")[(most-1)*vocab:][:vocab], scoreTolerance)
		near(t, "hidden rows", r.d.round.hidden, of("hidden")[:most*r.d.cfg.hidden], scoreTolerance)
		for j, c := range a.Chance {
			if d := math.Abs(float64(c) - of("confidence")[j]); !(d <= confidenceTolerance) {
				t.Errorf("confidence of guess %d is %v, off by %.1e", j, c, d)
			}
		}
		if len(a.Chance) != most {
			t.Errorf("%d chances of %d guesses", len(a.Chance), most)
		}
	}
}

// near fails unless every element is within tol of the largest magnitude of want.
func near(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if worst := off(got, want); !(worst <= tol) {
		t.Errorf("%s: off by %.2e of the largest, want at most %.0e", what, worst, tol)
	}
}

func off(got []float32, want []float64) float64 {
	var most, worst float64
	for i, w := range want {
		most = max(most, math.Abs(w))
		if d := math.Abs(float64(got[i]) - w); !(d <= worst) { // a NaN sticks
			worst = d
		}
	}
	return worst / most
}

// TestEightBitsStayNear holds what the codes may cost: they have a step of 1/255 of the span of their group.
func TestEightBitsStayNear(t *testing.T) {
	want := golden(t)
	r := newRunner(t, 1)
	size := func(d *Drafter) int64 { return d.fc.Bytes() + d.w2.Bytes() + d.layers[0].qkv.Bytes() }
	whole := size(r.d)
	r.d = r.drafter(1, Options{Bits: 8})
	if got := size(r.d); got*100 > whole*60 {
		t.Errorf("8 bits take %d bytes, 16 bits %d", got, whole)
	}
	ids := want.IDs("ids_0")
	r.d.Open(0, ids)
	r.forward(span{0, 0, ids[:len(ids)-1]})
	r.propose(1, 0)
	worst := off(r.d.round.chain.scores, want["logits_0"][:r.d.cfg.vocab])
	if worst > 2e-2 || worst < scoreTolerance { // it is 1e-2
		t.Errorf("scores are off by %.2e of the largest", worst)
	}
}

// TestPairingMatters shows that the golden would notice heads turned the other way.
func TestPairingMatters(t *testing.T) {
	want := golden(t)
	r := newRunner(t, 1)
	r.d.cfg.pairing = backend.HalfSplit
	ids := want.IDs("ids_0")
	r.d.Open(0, ids)
	r.forward(span{0, 0, ids[:len(ids)-1]})
	r.propose(1, 0)
	if worst := off(r.d.round.chain.scores, want["logits_0"][:r.d.cfg.vocab]); worst < 100*scoreTolerance {
		t.Errorf("half-split pairs are off by no more than %.2e", worst)
	}
}
