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
			"four taps":         func(s *modeltest.Spec) { s.Kernel = 4 },
			"attention alone":   func(s *modeltest.Spec) { s.Layers = "aa" },
			"convolution alone": func(s *modeltest.Spec) { s.Layers = "cc" },
		},
	}
}

func TestFamily(t *testing.T) { suite().Run(t) }

func TestTypeOfWeightsCannotBeSeen(t *testing.T) {
	suite().Same(t, func(s *modeltest.Spec) { s.DType = loader.F32 })
}
