package qwen3moe_test

import (
	"os"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/families"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

func suite() modeltest.Suite {
	return modeltest.Suite{
		Open:   families.Open,
		Device: func() (backend.Device, error) { return cpu.Open(cpu.Options{Threads: 1}) },
		Golden: os.DirFS("testdata"),
		Base: modeltest.Spec{
			Type: "qwen3_moe", Vocab: 300, Hidden: 96, Layers: "aaa", Q: 6, KV: 2, Dim: 16, FF: 160, DType: loader.BF16,
			Experts: modeltest.Experts{Count: 8, TopK: 3, Width: 48, Dense: 1, Scale: 1},
		},
		Changes: map[string]func(*modeltest.Spec){
			"raw weights":        func(s *modeltest.Spec) { s.Experts.Raw = true },
			"one of many":        func(s *modeltest.Spec) { s.Experts.Count, s.Experts.TopK = 33, 1 },
			"all of few":         func(s *modeltest.Spec) { s.Experts.Count, s.Experts.TopK = 2, 2 },
			"no dense layer":     func(s *modeltest.Spec) { s.Experts.Dense = 0 },
			"dense layers alone": func(s *modeltest.Spec) { s.Experts.Dense = 3 },
		},
	}
}

func TestFamily(t *testing.T) { suite().Run(t) }

func TestStackedExpertsAreTheSame(t *testing.T) {
	suite().Same(t, func(s *modeltest.Spec) { s.Experts.Stacked = true })
}
