package check

import (
	"flag"
	"fmt"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
	"tfbatch/internal/gpu"
	"tfbatch/metal/internal/msl"
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
	d := Open(l)
	d.Seed = seed
	dev, err := gpu.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func TestFastDevice(t *testing.T) {
	lib := build(t, false)
	backendtest.Run(t, func(t testing.TB) backend.Device { return open(t, lib, 0) })
}

// TestCheckedDevice runs the suite with every access checked, threads in order and shuffled.
func TestCheckedDevice(t *testing.T) {
	lib := build(t, true)
	for _, seed := range []uint32{0, 12345} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			backendtest.Run(t, func(t testing.TB) backend.Device { return open(t, lib, seed) })
		})
	}
}
