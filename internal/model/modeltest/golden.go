package modeltest

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"testing"
)

// Tolerances against a float64 reference, as shares of the largest logit and of a tap's norm.
type tolerance struct{ logits, taps, gap float64 }

// With K and V in f32 the arithmetic loses some 5e-7; bf16 keeps 8 bits of them.
var (
	exactKV = tolerance{logits: 1e-5, taps: 1e-5, gap: 1e-3}
	bf16KV  = tolerance{logits: 1e-2, taps: 1e-2, gap: 0.1}
)

// Golden compares a model with golden.safetensors of dir: for case i the ids of a prompt, logits of
// every row, the residual stream after some layers, 48 greedy ids that follow and at each the distance
// of the best logit from the next.
func Golden(t *testing.T, on Subject, dir fs.FS) {
	golden, err := ReadFile(dir, "golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for _, kvF32 := range []bool{true, false} {
		tol := bf16KV
		if kvF32 {
			tol = exactKV
		}
		for i := 0; golden[fmt.Sprintf("ids_%d", i)] != nil; i++ {
			t.Run(fmt.Sprintf("case%d/kvF32=%t", i, kvF32), func(t *testing.T) {
				lanes := NewLanes(t, on, 1, 1, kvF32)
				prompt := golden.IDs(fmt.Sprintf("ids_%d", i))
				rows := lanes.Forward(Run{IDs: prompt})
				near(t, "logits", rows.Logits, golden[fmt.Sprintf("logits_%d", i)], tol.logits)
				goldenTaps(t, rows, golden, i, on.Model.Info().Hidden, tol.taps)
				greedy := golden.IDs(fmt.Sprintf("greedy_%d", i))
				goldenGreedy(t, lanes, rows, len(prompt), greedy, golden[fmt.Sprintf("gap_%d", i)], tol.gap)
			})
		}
	}
}

// MLX compares a quantized checkpoint with the logits that mlx-lm computes from it, in float32 but in an order of its own.
// golden_mlx.py made both of a family's testdata.
func MLX(t *testing.T, on Subject, dir fs.FS) {
	golden, err := ReadFile(dir, "golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; golden[fmt.Sprintf("ids_%d", i)] != nil; i++ {
		rows := NewLanes(t, on, 1, 1, true).Forward(Run{IDs: golden.IDs(fmt.Sprintf("ids_%d", i))})
		near(t, "logits", rows.Logits, golden[fmt.Sprintf("logits_%d", i)], exactKV.logits)
	}
}

// goldenTaps compares the layers that the golden file has.
func goldenTaps(t *testing.T, rows Rows, golden Values, i, hidden int, tol float64) {
	t.Helper()
	found := 0
	for layer := range len(rows.Taps[0]) / hidden {
		want, ok := golden[fmt.Sprintf("tap_%d_%d", i, layer)]
		if !ok {
			continue
		}
		found++
		near(t, fmt.Sprintf("tap %d", layer), tapOf(rows, layer, hidden), want, tol)
	}
	if found == 0 {
		t.Error("no taps in the golden file")
	}
}

func tapOf(rows Rows, layer, hidden int) (out [][]float32) {
	for _, row := range rows.Taps {
		out = append(out, row[layer*hidden:][:hidden])
	}
	return out
}

// goldenGreedy feeds the reference's ids and asks for the same choice wherever it is not a close call.
func goldenGreedy(t *testing.T, lanes *Lanes, rows Rows, at int, greedy []int32, gaps []float64, gap float64) {
	t.Helper()
	for step, id := range greedy {
		last := rows.Logits[len(rows.Logits)-1]
		if best := argmax(last); best != id && gaps[step] > gap {
			t.Errorf("step %d: id %d, want %d with a gap of %.4f", step, best, id, gaps[step])
		}
		rows = lanes.Forward(Run{At: at + step, IDs: []int32{id}})
	}
}

func argmax(x []float32) int32 { return int32(slices.Index(x, slices.Max(x))) }

// near fails unless every element is within tol of the largest magnitude of want.
func near(t *testing.T, what string, got [][]float32, want []float64, tol float64) {
	t.Helper()
	var most, worst float64
	flat := slices.Concat(got...)
	if len(flat) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(flat), len(want))
	}
	for i, w := range want {
		most = max(most, math.Abs(w))
		if d := math.Abs(float64(flat[i]) - w); !(d <= worst) { // a NaN sticks
			worst = d
		}
	}
	t.Logf("%s: off by %.2e of the largest", what, worst/most)
	if !(worst <= tol*most) {
		t.Errorf("%s: off by %.2e of the largest %.3f, want at most %.0e", what, worst/most, most, tol)
	}
}
