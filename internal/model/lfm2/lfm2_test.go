package lfm2_test

import (
	"os"
	"testing"

	"tfbatch/internal/cpu"
	"tfbatch/internal/families"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

func device(t *testing.T) *cpu.Device {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestGolden(t *testing.T) {
	dir := os.DirFS("testdata")
	modeltest.Golden(t, modeltest.Load(t, families.Open, device(t), dir), dir)
}

func TestExact(t *testing.T) {
	modeltest.Exact(t, modeltest.Load(t, families.Open, device(t), os.DirFS("testdata")))
}

var small = modeltest.Spec{
	Type: "lfm2", Vocab: 300, Hidden: 96, Layers: "cacca", Q: 6, KV: 2, Dim: 16, FF: 160, Kernel: 3, DType: loader.BF16,
}

func TestRandomCheckpoints(t *testing.T) {
	for name, change := range map[string]func(*modeltest.Spec){
		"plain":                 func(*modeltest.Spec) {},
		"biases":                func(s *modeltest.Spec) { s.Bias = true },
		"untied":                func(s *modeltest.Spec) { s.Untied = true },
		"older keys":            func(s *modeltest.Spec) { s.OldKeys = true },
		"four taps":             func(s *modeltest.Spec) { s.Kernel = 4 },
		"one head for all":      func(s *modeltest.Spec) { s.KV = 1 },
		"heads wider than H":    func(s *modeltest.Spec) { s.Q, s.KV, s.Dim = 8, 8, 32 },
		"attention alone":       func(s *modeltest.Spec) { s.Layers = "aa" },
		"convolution alone":     func(s *modeltest.Spec) { s.Layers = "cc" },
		"f32 weights":           func(s *modeltest.Spec) { s.DType = loader.F32 },
		"widths of odd numbers": func(s *modeltest.Spec) { s.Vocab, s.Hidden, s.FF, s.Dim = 257, 70, 99, 22 },
	} {
		t.Run(name, func(t *testing.T) {
			s := small
			change(&s)
			modeltest.Random(t, families.Open, device(t), s)
		})
	}
}

func TestTypeOfWeightsCannotBeSeen(t *testing.T) {
	wide := small
	wide.DType = loader.F32
	modeltest.Same(t, modeltest.Load(t, families.Open, device(t), modeltest.Make(t, small, 1)), modeltest.Load(t, families.Open, device(t), modeltest.Make(t, wide, 1)))
}
