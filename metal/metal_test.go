package metal

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
	"tfbatch/internal/gpu/modeltest"
	"tfbatch/internal/selftest"
	"tfbatch/metal/internal/check"
	"tfbatch/metal/internal/msl"
	"tfbatch/metal/kernels"
)

// withClang makes the tests that compile kernels run, and fail where the compiler is missing.
var withClang = flag.Bool("clang", false, "compile the kernels with "+msl.Clang+" and run them")

// idle is a GPU that runs nothing.
type idle struct{ err error }

type idleMemory []byte

func (m idleMemory) Bytes() int64 { return int64(len(m)) }

func (g *idle) alloc(bytes int64) (kernels.Mem, unsafe.Pointer) {
	m := make(idleMemory, bytes)
	return m, unsafe.Pointer(&m[0])
}

func (g *idle) run(kernels.Launch) error { return g.err }

// checked is a GPU that runs kernels compiled for the CPU.
type checked struct{ *check.Driver }

func (g checked) alloc(bytes int64) (kernels.Mem, unsafe.Pointer) {
	m, err := g.Alloc(bytes)
	if err != nil {
		panic(err)
	}
	return m, unsafe.Pointer(&g.Contents(m)[0])
}

func (g checked) run(l kernels.Launch) error { return g.Run([]kernels.Launch{l}) }

// library compiles the kernels for the CPU.
func library(t *testing.T) *check.Library {
	t.Helper()
	if !*withClang {
		t.Skip("needs " + msl.Clang + ": run with -clang")
	}
	tools, err := msl.NewToolchain(t.TempDir(), "kernels")
	if err != nil {
		t.Fatal(err)
	}
	units, err := tools.ParseFolder("kernels")
	if err != nil {
		t.Fatal(err)
	}
	lib, err := check.Build(tools, t.TempDir(), false, units...)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// TestContract runs the suite through the whole host path, with the kernels on the CPU.
func TestContract(t *testing.T) {
	lib := library(t)
	backendtest.Run(t, func(t testing.TB) backend.Device {
		d, err := open(newFake(t, checked{check.Open(lib)}))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// TestModel runs a whole model and its drafter through the host path, and wants the CPU
// device's replies and nothing left alive.
func TestModel(t *testing.T) {
	f := newFake(t, checked{check.Open(library(t))})
	d, err := open(f)
	if err != nil {
		t.Fatal(err)
	}
	modeltest.Run(t, d, modeltest.Size{Questions: selftest.Questions{Count: 2, Tokens: 8}, Lanes: []int{1, 2}})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("left alive: %v", alive)
	}
}

// pass opens a device, runs a pass of many launches and closes the device.
func pass(f *fake) (err error) {
	d, err := open(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	a, err := d.NewBuffer(4, 64)
	if err != nil {
		return err
	}
	if err := d.Write(a, []float32{1, 2, 3}); err != nil {
		return err
	}
	p := d.Begin()
	for range 3 * launchesPerBuffer / 2 {
		p.Add(a, a, a)
	}
	p.RMSNorm(a, a, a.Top(1), 1e-5)
	p.Read(make([]float32, 256), a)
	return p.Commit(context.Background())
}

func TestNothingLeaks(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := newFake(t, &idle{})
		f.old = old
		if err := pass(f); err != nil {
			t.Fatal(err)
		}
		if alive := f.leaks(); len(alive) != 0 {
			t.Errorf("left alive: %v", alive)
		}
	}
}

// silent are methods without a result, or whose zero is a good one.
var silent = []string{
	"release", "endEncoding", "commit", "waitUntilCompleted", "requestResidency", "addAllocation:", "addResidencySet:",
	"setLanguageVersion:", "setMathMode:", "setMathFloatingPointFunctions:", "setComputePipelineState:",
	"setBuffer:offset:atIndex:", "setBytes:length:atIndex:", "dispatchThreadgroups:threadsPerThreadgroup:",
	"respondsToSelector:",
}

// TestEveryFailureIsAnError makes each method with a result fail in turn: one error that
// names it, and nothing left alive.
func TestEveryFailureIsAnError(t *testing.T) {
	sound := newFake(t, &idle{})
	if err := pass(sound); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{ // what the error says instead of the method
		"MTLCreateSystemDefaultDevice": "no Metal device", "supportsFamily:": "older than Apple's M1",
		"recommendedMaxWorkingSetSize": "working set is 0", "threadExecutionWidth": "simdgroups of 0 threads",
		"maxTotalThreadsPerThreadgroup": "the GPU runs 0 threads", "status": "ended with status 0",
	}
	for _, method := range sound.log {
		if slices.Contains(silent, method) {
			continue
		}
		f := newFake(t, &idle{})
		f.fail = method
		want := names[method]
		if want == "" {
			want = method
		}
		if err := pass(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails: got %v, want %q", method, err, want)
		}
		if alive := f.leaks(); len(alive) != 0 {
			t.Errorf("%s fails: left alive: %v", method, alive)
		}
	}
}

func TestACommandBufferThatFailsIsAnError(t *testing.T) {
	f := newFake(t, &idle{err: errors.New("page fault")})
	err := pass(f)
	if err == nil || !strings.Contains(err.Error(), "status 5") || !strings.Contains(err.Error(), "page fault") || !strings.Contains(err.Error(), "AGX_RELAX") {
		t.Errorf("got %v", err)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("left alive: %v", alive)
	}
}

func TestMemoryStopsAtTheWorkingSet(t *testing.T) {
	d, err := open(newFake(t, &idle{}))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.NewBuffer(1<<15, 1<<16); err == nil || !strings.Contains(err.Error(), "working set is 4294967296") {
		t.Errorf("got %v", err)
	}
}

func TestSourceIsOneText(t *testing.T) {
	for _, k := range kernels.Kernels {
		text, err := kernels.Source(k.File)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, `#include "`) || strings.Count(text, "#include <metal_stdlib>") != 1 || len(text) >= textBytes {
			t.Errorf("%s: %d bytes with includes of its own", k.File, len(text))
		}
	}
}
