package lfm2_test

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
			Type: "lfm2", Vocab: 300, Hidden: 96, Layers: "cacca", Q: 6, KV: 2, Dim: 16, FF: 160, Kernel: 3, DType: loader.BF16,
		},
		Changes: map[string]func(*modeltest.Spec){
			"untied":             func(s *modeltest.Spec) { s.Untied = true },
			"older keys":         func(s *modeltest.Spec) { s.OldKeys = true },
			"one head for all":   func(s *modeltest.Spec) { s.KV = 1 },
			"heads wider than H": func(s *modeltest.Spec) { s.Q, s.KV, s.Dim = 8, 8, 32 },
			"widths in no step":  func(s *modeltest.Spec) { s.Vocab, s.Hidden, s.FF, s.Dim = 257, 70, 99, 22 },
			"biases":             func(s *modeltest.Spec) { s.Bias = true },
			"four taps":          func(s *modeltest.Spec) { s.Kernel = 4 },
			"attention alone":    func(s *modeltest.Spec) { s.Layers = "aa" },
			"convolution alone":  func(s *modeltest.Spec) { s.Layers = "cc" },
			"f32 weights":        func(s *modeltest.Spec) { s.DType = loader.F32 },
		},
	}
}

func TestFamily(t *testing.T) { suite().Run(t) }

func TestTypeOfWeightsCannotBeSeen(t *testing.T) {
	suite().Same(t, func(s *modeltest.Spec) { s.DType = loader.F32 })
}
