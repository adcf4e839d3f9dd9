package families_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/families"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

var converted = flag.String("converted", "", "directory of checkpoints, each with the logits of mlx-lm")

// TestMLXRunsWhatQuantizeWrites compares folders that "tfbatch quantize" wrote and mlx-lm has loaded.
func TestMLXRunsWhatQuantizeWrites(t *testing.T) {
	if *converted == "" {
		t.Skip("needs -converted DIR")
	}
	entries, err := os.ReadDir(*converted)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d checkpoints, error %v", len(entries), err)
	}
	suite := modeltest.Suite{
		Open:   families.Open,
		Device: func() (backend.Device, error) { return cpu.Open(cpu.Options{}) },
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			dir := loader.Dir(filepath.Join(*converted, e.Name()))
			modeltest.MLX(t, suite.Load(t, dir), dir)
		})
	}
}

var smollm2 = flag.String("smollm2", "", "directory that testdata/smollm2.py has filled")

// TestPerplexityIsLlamaCpps runs SmolLM2-135M-Instruct over the text that llama.cpp ran it over, on the same weights.
func TestPerplexityIsLlamaCpps(t *testing.T) {
	if *smollm2 == "" {
		t.Skip("needs -smollm2 DIR")
	}
	data, err := os.ReadFile(filepath.Join(*smollm2, "reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var reference struct {
		Chunks []struct {
			IDs     []int32 `json:"ids"`
			NLL     float64 `json:"nll"`     // of the weights in f32
			Rounded float64 `json:"rounded"` // with activations in 8 bits
		} `json:"chunks"`
	}
	if err := json.Unmarshal(data, &reference); err != nil {
		t.Fatal(err)
	}
	on := modeltest.Suite{
		Open:   families.Open,
		Device: func() (backend.Device, error) { return cpu.Open(cpu.Options{}) },
	}.Load(t, loader.Dir(filepath.Join(*smollm2, "model")))
	var ours, theirs, rounded, n float64
	for _, c := range reference.Chunks {
		rows := modeltest.NewLanes(t, on, 1, 1, false).Forward(modeltest.Run{IDs: c.IDs})
		for i, id := range c.IDs[1:] {
			ours += surprise(rows.Logits[i], id)
		}
		theirs, rounded, n = theirs+c.NLL, rounded+c.Rounded, n+float64(len(c.IDs)-1)
	}
	if n == 0 {
		t.Fatal("no text")
	}
	got, want := math.Exp(ours/n), math.Exp(theirs/n)
	t.Logf("perplexity of %.0f ids: %.4f, llama.cpp has %.4f (%+.3f %%), and %.4f with activations in 8 bits",
		n, got, want, 100*(got/want-1), math.Exp(rounded/n))
	const most = 0.001 // a base of the angles that is off by a tenth makes 0.003
	if !(math.Abs(got/want-1) <= most) {
		t.Errorf("perplexity %.4f, want that of llama.cpp, %.4f, within %.1f %%", got, want, 100*most)
	}
}

// surprise is -ln p of an id.
func surprise(logits []float32, id int32) float64 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return most + math.Log(sum) - float64(logits[id])
}
