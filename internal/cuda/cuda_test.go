package cuda

import (
	"flag"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
	"tfbatch/internal/gpu/gputest"
	"tfbatch/internal/gpu/modeltest"
	"tfbatch/internal/selftest"
)

// withGPU makes the tests that need an NVIDIA GPU run, and fail where there is none.
var withGPU = flag.Bool("gpu", false, "run the tests that need an NVIDIA GPU")

func device(t testing.TB) backend.Device {
	t.Helper()
	if !*withGPU {
		t.Skip("needs an NVIDIA GPU: run with -gpu")
	}
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContract(t *testing.T) {
	if !*withGPU {
		t.Skip("needs an NVIDIA GPU: run with -gpu")
	}
	t.Run("contract", func(t *testing.T) { backendtest.Run(t, device) })
	t.Run("shapes", func(t *testing.T) { gputest.Run(t, device) })
}

// TestModel wants the CPU device's replies of a whole model, plain and drafted.
func TestModel(t *testing.T) {
	d := device(t)
	defer d.Close()
	modeltest.Run(t, d, modeltest.Size{Questions: selftest.Questions{Count: 24, Tokens: 120}, Lanes: []int{1, 4, 8, 16}})
}
