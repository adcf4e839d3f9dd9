// Package cpu is the device that every machine has, and the bit oracle of the others:
// ../backend/ARITHMETIC.md, and I8.md beside it, in plain Go, with generated assembly for AVX-512, AVX2 and
// NEON beside it that gives the same bits.
//
// Start with [Open]. An operator runs when it is called; Commit only reports. Work is
// split over threads by outputs or by rows, never inside a sum, so the number of threads
// cannot be seen in a result.
package cpu

import (
	"errors"
	"fmt"
	"runtime"

	"tfbatch/internal/backend"
)

//go:generate go run ./asmgen

// ISA is an instruction set with kernels of its own.
type ISA uint8

// Auto takes the fastest one that the machine has; Portable is plain Go.
const (
	Auto ISA = iota
	AVX512
	AVX2
	NEON
	Portable
)

// String names an instruction set the way flags and errors do.
func (i ISA) String() string {
	names := [...]string{"auto", "avx512", "avx2", "neon", "portable"}
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("isa%d", uint8(i))
}

// Options choose how a device works. Only Int8 changes what it computes.
type Options struct {
	Threads int // 0: as many as Go may run at once
	ISA     ISA
	Int8    bool // products with affine weights are those of ../backend/I8.md
}

// maxThreads is above any machine known to us; more is a mistake in a job file.
const maxThreads = 1024

// Device is the CPU and the memory taken from it. It is a [backend.Device],
// [backend.ConvDevice] and [backend.MoEDevice].
type Device struct {
	kernels *kernels
	int8    bool
	pool    *pool
	regions []region // what Close gives back
	closed  bool
	meter   *Meter // nil where nobody watches

	// The running operator; kept here so that a steady step allocates nothing.
	ops operators
}

var (
	_ backend.Device     = (*Device)(nil)
	_ backend.ConvDevice = (*Device)(nil)
	_ backend.MoEDevice  = (*Device)(nil)
	_ backend.Pass       = (*Pass)(nil)
	_ backend.ConvPass   = (*Pass)(nil)
	_ backend.MoEPass    = (*Pass)(nil)
	_ backend.TapPass    = (*Pass)(nil)
)

// Open starts a device and its threads. Close stops them.
func Open(o Options) (*Device, error) {
	k, err := choose(o.ISA)
	if err != nil {
		return nil, err
	}
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if threads < 0 || threads > maxThreads {
		return nil, fmt.Errorf("cpu: %d threads, want 1 to %d, or 0 for all", threads, maxThreads)
	}
	return &Device{kernels: k, int8: o.Int8, pool: newPool(threads)}, nil
}

// choose finds the kernels for isa, or the best ones for Auto.
func choose(isa ISA) (*kernels, error) {
	for _, k := range available() {
		if isa == Auto || k.isa == isa {
			return k, nil
		}
	}
	return nil, fmt.Errorf("cpu: this machine has no %v", isa)
}

// Name says what the device is and how it works: "cpu avx512, 2 threads".
func (d *Device) Name() string {
	if d.int8 {
		return fmt.Sprintf("cpu %v, i8-v1, %d threads", d.kernels.isa, len(d.pool.workers))
	}
	return fmt.Sprintf("cpu %v, %d threads", d.kernels.isa, len(d.pool.workers))
}

// Begin starts a pass. Passes of one device may follow each other, not overlap.
func (d *Device) Begin() backend.Pass {
	p := &Pass{dev: d}
	if d.closed {
		p.err = errors.New("cpu: the device is closed")
	}
	return p
}

// Close stops the threads and frees the weights and states. It may be called twice.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.pool.close()
	var errs []error
	for _, r := range d.regions {
		errs = append(errs, r.free())
	}
	d.regions = nil
	return errors.Join(errs...)
}
