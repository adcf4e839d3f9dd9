package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
)

func opener(o Options) func(testing.TB) backend.Device {
	return func(t testing.TB) backend.Device {
		d, err := Open(o)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return d
	}
}

// TestContract holds every instruction set and thread count to the same bits.
func TestContract(t *testing.T) {
	for _, k := range available() {
		counts := []int{1, 3}
		if k.isa == Portable || testing.Short() {
			counts = []int{2}
		}
		for _, threads := range counts {
			t.Run(fmt.Sprintf("%v/%d threads", k.isa, threads), func(t *testing.T) {
				if raced && k.isa == Portable { // what goroutines share is the same for all formats
					backendtest.RunDense(t, opener(Options{Threads: threads, ISA: k.isa}))
					return
				}
				backendtest.Run(t, opener(Options{Threads: threads, ISA: k.isa}))
				backendtest.RunInt8(t, opener(Options{Threads: threads, ISA: k.isa, Int8: true}))
			})
		}
	}
}

func TestOpenRefusesByName(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{ISA: missing()}, "no " + missing().String()},
		{Options{ISA: 99}, "no isa99"},
		{Options{Threads: -1}, "-1 threads"},
		{Options{Threads: 1 << 20}, "1048576 threads"},
	} {
		if _, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open(%+v): error %v, want one with %q", c.o, err, c.want)
		}
	}
}

// missing is an instruction set of another kind of machine.
func missing() ISA {
	if runtime.GOARCH == "arm64" {
		return AVX512
	}
	return NEON
}

// TestClosedDeviceFails: memory is gone after Close, so nothing may touch it.
func TestClosedDeviceFails(t *testing.T) {
	d := opener(Options{Threads: 2})(t)
	b, err := d.NewBuffer(2, 8)
	if err != nil {
		t.Fatal(err)
	}
	early := d.Begin()
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	late := d.Begin()
	for name, p := range map[string]backend.Pass{"before": early, "after": late} {
		p.Add(b, b, b)
		if err := p.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a pass begun %s Close: error %v", name, err)
		}
	}
	if err := d.Write(b, []float32{1}); err == nil {
		t.Error("a buffer was written after Close")
	}
	if _, err := d.NewBuffer(1, 1); err == nil {
		t.Error("a buffer was made after Close")
	}
}

// TestForeignThingsAreRefused: a buffer of another device is memory that may be gone.
func TestForeignThingsAreRefused(t *testing.T) {
	a, b := opener(Options{Threads: 1})(t), opener(Options{Threads: 1})(t)
	defer a.Close()
	defer b.Close()
	mine, err := a.NewBuffer(1, 8)
	if err != nil {
		t.Fatal(err)
	}
	p := b.Begin()
	p.Add(mine, mine, mine)
	if err := p.Commit(t.Context()); err == nil || !strings.Contains(err.Error(), "not a buffer of this device") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledPassSaysSo(t *testing.T) {
	d := opener(Options{Threads: 1})(t)
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Begin().Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestPoolDoesEveryPieceOnce, with sleepers between the tasks and none.
func TestPoolDoesEveryPieceOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for round := range 300 {
			c := &counts{n: make([]atomic.Int32, round%40)}
			p.run(c, len(c.n))
			for i := range c.n {
				if n := c.n[i].Load(); n != 1 {
					t.Fatalf("%d threads, round %d: piece %d of %d done %d times", threads, round, i, len(c.n), n)
				}
			}
			if round%100 == 99 {
				for int(p.asleep.Load()) < threads-1 {
					runtime.Gosched()
				}
			}
		}
		p.close()
	}
}

type counts struct{ n []atomic.Int32 }

func (c *counts) do(_ *worker, piece int) { c.n[piece].Add(1) }
