package llama_test

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
			Type: "llama", Vocab: 300, Hidden: 96, Layers: "aaa", Q: 6, KV: 2, Dim: 16, FF: 160, DType: loader.BF16,
		},
	}
}

func TestFamily(t *testing.T) { suite().Run(t) }
