package check

import (
	"flag"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
	"tfbatch/internal/gpu"
	"tfbatch/internal/gpu/gputest"
	"tfbatch/metal/internal/msl"
	"tfbatch/metal/kernels"
)

// withClang makes the tests that compile kernels run, and fail where the compiler is missing.
var withClang = flag.Bool("clang", false, "compile the kernels with "+msl.Clang+" and run them")

const kernelFolder = "../../kernels"

// build compiles all kernels.
func build(t testing.TB, checks bool) *Library {
	t.Helper()
	tools, units := parse(t)
	lib, err := Build(tools, t.TempDir(), checks, units...)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func parse(t testing.TB) (*msl.Toolchain, []*msl.Unit) {
	t.Helper()
	if !*withClang {
		t.Skip("needs " + msl.Clang + ": run with -clang")
	}
	tools, err := msl.NewToolchain(t.TempDir(), kernelFolder)
	if err != nil {
		t.Fatal(err)
	}
	units, err := tools.ParseFolder(kernelFolder)
	if err != nil {
		t.Fatal(err)
	}
	return tools, units
}

func open(t testing.TB, l *Library, seed uint32) backend.Device {
	t.Helper()
	d := Open(l)
	d.Seed = seed
	dev, err := gpu.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// TestFastDevice runs everything without the checks.
func TestFastDevice(t *testing.T) {
	t.Parallel()
	lib := build(t, false)
	device := func(t testing.TB) backend.Device { return open(t, lib, 0) }
	t.Run("contract", func(t *testing.T) { backendtest.Run(t, device) })
	t.Run("shapes", func(t *testing.T) { gputest.Run(t, device) })
}

// TestCheckedDevice runs everything with every access checked, once with the threads in order
// and once shuffled, and wants every kernel to have run.
func TestCheckedDevice(t *testing.T) {
	t.Parallel()
	lib := build(t, true)
	ran := map[string]bool{}
	device := func(seed uint32) func(t testing.TB) backend.Device {
		return func(t testing.TB) backend.Device {
			d := Open(lib)
			d.Seed = seed
			dev, err := gpu.New(recorder{d, ran})
			if err != nil {
				t.Fatal(err)
			}
			return dev
		}
	}
	t.Run("contract", func(t *testing.T) { backendtest.Run(t, device(0)) })
	t.Run("shuffled", func(t *testing.T) { backendtest.Run(t, device(12345)) })
	t.Run("shapes", func(t *testing.T) { gputest.Run(t, device(67890)) })
	if t.Failed() {
		return
	}
	for _, k := range kernels.Kernels {
		if !ran[k.Name] {
			t.Errorf("%s never ran", k.Name)
		}
	}
}

// recorder notes which kernels run.
type recorder struct {
	*Driver
	ran map[string]bool
}

func (r recorder) Run(launches []kernels.Launch) error {
	for _, l := range launches {
		r.ran[l.Kernel.Name] = true
	}
	return r.Driver.Run(launches)
}
