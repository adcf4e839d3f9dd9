package lfm2moe_test

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
	Type: "lfm2_moe", Vocab: 300, Hidden: 96, Layers: "caca", Q: 6, KV: 2, Dim: 16, FF: 160, Kernel: 3, DType: loader.BF16,
	Experts: modeltest.Experts{Count: 8, TopK: 3, Width: 48, Dense: 1, Biased: true, Scale: 1},
}

func TestRandomCheckpoints(t *testing.T) {
	for name, change := range map[string]func(*modeltest.Spec){
		"plain":                 func(*modeltest.Spec) {},
		"no selection bias":     func(s *modeltest.Spec) { s.Experts.Biased = false },
		"raw weights":           func(s *modeltest.Spec) { s.Experts.Raw = true },
		"scaled weights":        func(s *modeltest.Spec) { s.Experts.Scale = 2.5 },
		"one of many":           func(s *modeltest.Spec) { s.Experts.Count, s.Experts.TopK = 33, 1 },
		"all of few":            func(s *modeltest.Spec) { s.Experts.Count, s.Experts.TopK = 2, 2 },
		"no dense layer":        func(s *modeltest.Spec) { s.Experts.Dense = 0 },
		"dense layers alone":    func(s *modeltest.Spec) { s.Experts.Dense = 4 },
		"biases, untied, older": func(s *modeltest.Spec) { s.Bias, s.Untied, s.OldKeys = true, true, true },
	} {
		t.Run(name, func(t *testing.T) {
			s := small
			change(&s)
			modeltest.Random(t, families.Open, device(t), s)
		})
	}
}

func TestStackedExpertsAreTheSame(t *testing.T) {
	stacked := small
	stacked.Experts.Stacked = true
	modeltest.Same(t, modeltest.Load(t, families.Open, device(t), modeltest.Make(t, small, 1)), modeltest.Load(t, families.Open, device(t), modeltest.Make(t, stacked, 1)))
}
