package metal

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
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

func (g idle) alloc(bytes int64) (kernels.Mem, unsafe.Pointer) {
	m := make(idleMemory, bytes)
	return m, unsafe.Pointer(&m[0])
}

func (g idle) run(kernels.Launch) error { return g.err }

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

// library is the kernels compiled for the CPU, once for all tests.
func library(t *testing.T) *check.Library {
	t.Helper()
	if !*withClang {
		t.Skip("needs " + msl.Clang + ": run with -clang")
	}
	compiled.Do(func() { compiled.library = compile(t) })
	if compiled.library == nil {
		t.Fatal("the kernels did not compile")
	}
	return compiled.library
}

var compiled struct {
	sync.Once
	library *check.Library
}

func compile(t *testing.T) *check.Library {
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

// TestContract runs the suite through the whole host path, with the kernels on the CPU: as it is, and in the
// shortest pieces on a system that stops many.
func TestContract(t *testing.T) {
	lib := library(t)
	device := func(l limits, kill func() killer) func(t testing.TB) backend.Device {
		return func(t testing.TB) backend.Device {
			f := newFake(t, checked{check.Open(lib)})
			f.kill = kill()
			return opened(t, f, l)
		}
	}
	t.Run("as it is", func(t *testing.T) { backendtest.Run(t, device(usual, func() killer { return nil })) })
	t.Run("in pieces", func(t *testing.T) {
		backendtest.Run(t, device(limits{dispatch: 1 << 14, buffer: 1 << 15, launches: 5, again: 1000}, func() killer { return stopping(2, 25, new(int)) }))
	})
}

func opened(t testing.TB, f *fake, l limits) backend.Device {
	t.Helper()
	d, err := openWith(f, l)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestModel runs a whole model and its drafter through the host path, on a system that stops the GPU now and then,
// and wants the CPU device's replies and nothing left alive.
func TestModel(t *testing.T) {
	f := newFake(t, checked{check.Open(library(t))})
	stops := 0
	f.kill = stopping(500, 7, &stops)
	d := opened(t, f, usual)
	modeltest.Run(t, d, modeltest.Size{Questions: selftest.Questions{Count: 2, Tokens: 8}, Lanes: []int{1, 2}})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("left alive: %v", alive)
	}
	if stops < 20 {
		t.Errorf("stopped %d times, which says nothing", stops)
	}
}

// stopping stops the GPU after `first` launches, then after `more` more each time: at all places of a pass, which
// ends when it is run again.
func stopping(first, more int, stops *int) killer {
	left := first
	return func(launches []kernels.Launch) (int, bool) {
		if left -= len(launches); left >= 0 {
			return len(launches), true
		}
		at := left + len(launches)
		*stops++
		left = first + more**stops
		return at, *stops%2 == 0
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
	for range 3 * usual.launches / 2 {
		p.Add(a, a, a)
	}
	p.RMSNorm(a, a, a.Top(1), 1e-5)
	p.Read(make([]float32, 256), a)
	return p.Commit(context.Background())
}

func TestNothingLeaks(t *testing.T) {
	for _, old := range []bool{false, true} {
		f := newFake(t, idle{})
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
	"GPUStartTime", "GPUEndTime", // a time that makes no sense is left out
}

// TestEveryFailureIsAnError makes each method with a result fail in turn: one error that
// names it, and nothing left alive.
func TestEveryFailureIsAnError(t *testing.T) {
	sound := newFake(t, idle{})
	if err := pass(sound); err != nil {
		t.Fatal(err)
	}
	for _, method := range withResult(sound) {
		f := newFake(t, idle{})
		f.fail = method
		checkFailure(t, f, pass(f))
	}
}

// TestEveryCallOfAModelMayFail runs a whole model and its drafter, and makes each method with a result fail when two thirds
// of its calls are done.
func TestEveryCallOfAModelMayFail(t *testing.T) {
	sound := newFake(t, idle{})
	if err := replies(sound, "dspark"); err != nil {
		t.Fatal(err)
	}
	for _, method := range withResult(sound) {
		n := sound.calls[method]
		nth := (2*n + 2) / 3
		t.Run(fmt.Sprintf("%s, call %d of %d", method, nth, n), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, idle{})
			f.fail, f.nth = method, nth
			checkFailure(t, f, replies(f, "dspark"))
		})
	}
}

// replies opens a device, makes replies with a whole model and one of selftest.Drafts, and closes the device.
func replies(f *fake, drafts string) (err error) {
	d, err := open(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	m, err := selftest.Load(f.t.Context(), d)
	if err != nil {
		return err
	}
	_, err = m.Replies(f.t.Context(), drafts, 2, selftest.Questions{Count: 2, Tokens: 3})
	return err
}

// withResult are the methods that a run called, without those that are silent.
func withResult(f *fake) []string {
	return slices.DeleteFunc(slices.Clone(f.log), func(method string) bool { return slices.Contains(silent, method) })
}

// checkFailure wants one error that names what failed, and nothing left alive.
func checkFailure(t *testing.T, f *fake, err error) {
	t.Helper()
	names := map[string]string{ // what the error says instead of the method
		"MTLCreateSystemDefaultDevice": "no Metal device", "supportsFamily:": "older than Apple's M1",
		"recommendedMaxWorkingSetSize": "working set is 0", "threadExecutionWidth": "simdgroups of 0 threads",
		"maxTotalThreadsPerThreadgroup": "the GPU runs 0 threads", "status": "ended with status 0",
	}
	want := names[f.fail]
	if want == "" {
		want = f.fail
	}
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s fails: got %v, want one line with %q", f.fail, err, want)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("%s fails: left alive: %v", f.fail, alive)
	}
}

// TestAReasonThatCannotBeReadIsAnErrorToo fails a command buffer, and then what would say why.
func TestAReasonThatCannotBeReadIsAnErrorToo(t *testing.T) {
	for _, method := range []string{"error", "localizedDescription", "UTF8String", "code"} {
		f := newFake(t, idle{err: errors.New("page fault")})
		f.fail = method
		if err := pass(f); err == nil || !strings.Contains(err.Error(), "ended with status 5") {
			t.Errorf("%s fails: got %v", method, err)
		}
		if alive := f.leaks(); len(alive) != 0 {
			t.Errorf("%s fails: left alive: %v", method, alive)
		}
	}
}

func TestACommandBufferThatFailsIsAnError(t *testing.T) {
	f := newFake(t, idle{err: errors.New("page fault")})
	err := pass(f)
	if err == nil || !strings.Contains(err.Error(), "status 5") || !strings.Contains(err.Error(), "page fault") || strings.Contains(err.Error(), "stopped") {
		t.Errorf("got %v", err)
	}
	if n := f.calls["commit"]; n != 3 {
		t.Errorf("%d command buffers, want 2, and the residency set", n)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("left alive: %v", alive)
	}
}

// TestAPassThatIsAlwaysStoppedIsAnError wants shorter command buffers at every try, and then one error that says what
// can be done.
func TestAPassThatIsAlwaysStoppedIsAnError(t *testing.T) {
	f := newFake(t, idle{})
	var lengths []int
	f.kill = func(launches []kernels.Launch) (int, bool) {
		lengths = append(lengths, len(launches))
		return 0, false
	}
	err := pass(f)
	if err == nil || !strings.Contains(err.Error(), "stopped 5 times") || !strings.Contains(err.Error(), "run it once more") || !strings.Contains(err.Error(), "AGX_RELAX") {
		t.Errorf("got %v", err)
	}
	if want := []int{64, 32, 16, 8, 4}; !slices.Equal(lengths, want) {
		t.Errorf("first command buffers of %v launches, want %v", lengths, want)
	}
	if alive := f.leaks(); len(alive) != 0 {
		t.Errorf("left alive: %v", alive)
	}
}

func TestTheGPUsTimeIsRead(t *testing.T) {
	f := newFake(t, idle{})
	d := opened(t, f, usual)
	defer d.Close()
	a, err := d.NewBuffer(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := d.Begin()
	for range usual.launches + 1 {
		p.Add(a, a, a)
	}
	if err := p.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if busy := d.(backend.TimedDevice).Busy(); busy.Seconds() != 2*secondsOfBuffer {
		t.Errorf("busy for %v, want %v", busy.Seconds(), 2*secondsOfBuffer)
	}
}

func TestCommandBuffersAreShort(t *testing.T) {
	l := limits{buffer: 100, launches: 3}
	for _, c := range []struct {
		work []int64
		want int
	}{{[]int64{0, 0}, 2}, {[]int64{0, 0, 0, 0}, 3}, {[]int64{60, 40, 1}, 2}, {[]int64{500, 1}, 1}, {[]int64{99, 2}, 1}} {
		var launches []kernels.Launch
		for _, w := range c.work {
			launches = append(launches, kernels.Launch{Work: w})
		}
		if got := l.first(launches); got != c.want {
			t.Errorf("work of %v: %d launches, want %d", c.work, got, c.want)
		}
	}
}

func TestMemoryStopsAtTheWorkingSet(t *testing.T) {
	d, err := open(newFake(t, idle{}))
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

// uneven is a GPU that computes nothing, but one value of matrix products of more than one row.
type uneven struct{ idle }

func (uneven) run(l kernels.Launch) error {
	if rows := binary.LittleEndian.Uint32(l.Args); l.Kernel.File == "matmul" && rows > 1 && l.Kernel.Name != "unit_sums" {
		y := l.Buffers[len(l.Buffers)-1]
		binary.LittleEndian.PutUint32(y.Mem.(idleMemory)[y.Off:], math.Float32bits(1))
	}
	return nil
}

// TestAGPUWhoseRowsAreUnevenMayNotDraft wants the look at the real weights at the start to refuse guesses where a row
// among others gets other bits than alone, and plain decoding to go on.
func TestAGPUWhoseRowsAreUnevenMayNotDraft(t *testing.T) {
	for drafts, want := range map[string]string{
		"plain":  "",
		"copy":   "guesses are refused: device metal: logit 0 of row 0 is 1 among 5 rows and 0 alone",
		"dspark": "guesses are refused: device metal: logit 0 of row 0 is 1 among 5 rows and 0 alone",
	} {
		f := newFake(t, uneven{})
		if err := replies(f, drafts); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", drafts, err, want)
		}
		if alive := f.leaks(); len(alive) != 0 {
			t.Errorf("%s: left alive: %v", drafts, alive)
		}
	}
}
