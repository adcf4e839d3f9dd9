// Package check runs the kernels on the CPU, under a runtime that knows Metal's rules: it
// is the GPU of tests. A library built with the checks stops at the first access that is out
// of bounds, misaligned, unordered or unwritten, at threads that do not meet, and at more
// threadgroup memory than Apple's GPUs have; one built without them is fast enough for whole
// models.
//
// Start with [Build], then [Open].
package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"

	"tfbatch/metal/internal/msl"
	"tfbatch/metal/kernels"
)

// Library is kernels compiled for the CPU.
type Library struct {
	handle uintptr
	checks bool
	launch func(fn uintptr, args, len *uint64, readonly *byte, shape *uint32, check, seed, workers uint32, err *byte, errlen uint32) int32
}

// Build compiles kernel files into a library in dir, a folder of its own.
func Build(t *msl.Toolchain, dir string, checks bool, units ...*msl.Unit) (*Library, error) {
	f, err := os.CreateTemp(dir, "kernels*.so")
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(f.Name())
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if err := t.Library(path, checks, units...); err != nil {
		return nil, err
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	l := &Library{handle: handle, checks: checks}
	purego.RegisterLibFunc(&l.launch, handle, "msl_launch")
	return l, nil
}

// Driver is a gpu.Driver on a library. Seed, unless 0, shuffles the order of threads.
type Driver struct {
	Seed uint32

	lib    *Library
	memory []*memory
}

// Open makes a driver.
func Open(l *Library) *Driver { return &Driver{lib: l} }

// memory is a mapping of its own, so that nothing lies close behind it.
type memory struct {
	mapped []byte
	len    int64
}

// Bytes implements [kernels.Mem].
func (m *memory) Bytes() int64 { return m.len }

// Name implements gpu.Driver.
func (d *Driver) Name() string { return "check" }

// Alloc implements gpu.Driver.
func (d *Driver) Alloc(bytes int64) (kernels.Mem, error) {
	mapped, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	m := &memory{mapped, bytes}
	d.memory = append(d.memory, m)
	return m, nil
}

// Contents is a piece of memory itself, for a host that shares it as Metal's do.
func (d *Driver) Contents(m kernels.Mem) []byte { return m.(*memory).mapped }

// Upload implements gpu.Driver.
func (d *Driver) Upload(dst kernels.Mem, at int64, data []byte) error {
	copy(dst.(*memory).mapped[at:at+int64(len(data))], data)
	return nil
}

// Download implements gpu.Driver.
func (d *Driver) Download(dst []byte, src kernels.Mem, at int64) error {
	copy(dst, src.(*memory).mapped[at:at+int64(len(dst))])
	return nil
}

// Close implements gpu.Driver.
func (d *Driver) Close() error {
	var err error
	for _, m := range d.memory {
		err = errors.Join(err, syscall.Munmap(m.mapped))
	}
	d.memory = nil
	return err
}

// Run implements gpu.Driver.
func (d *Driver) Run(launches []kernels.Launch) error {
	for _, l := range launches {
		if err := d.run(l); err != nil {
			return fmt.Errorf("%s: %w", l.Kernel.Name, err)
		}
	}
	return nil
}

// maxBuffers is Metal's limit of buffers in a kernel.
const maxBuffers = 31

func (d *Driver) run(l kernels.Launch) error {
	fn, err := purego.Dlsym(d.lib.handle, "msl_call_"+l.Kernel.Name)
	if err != nil {
		return err
	}
	if len(l.Buffers) != len(l.Kernel.Buffers) || len(l.Args) != l.Kernel.ArgsSize {
		return fmt.Errorf("%d buffers and %d bytes of arguments, want %d and %d", len(l.Buffers), len(l.Args), len(l.Kernel.Buffers), l.Kernel.ArgsSize)
	}
	var addr, size [maxBuffers]uint64
	var readonly [maxBuffers]byte
	for i, b := range l.Buffers {
		if b.Mem == nil {
			continue
		}
		m := b.Mem.(*memory)
		if b.Off < 0 || b.Len < 0 || b.Off+b.Len > m.len {
			return fmt.Errorf("%s: bytes %d to %d of %d", l.Kernel.Buffers[i].Name, b.Off, b.Off+b.Len, m.len)
		}
		addr[i], size[i] = uint64(uintptr(unsafe.Pointer(&m.mapped[0])))+uint64(b.Off), uint64(b.Len)
	}
	// The library reads the arguments through a copy that the collector cannot move.
	var pin runtime.Pinner
	defer pin.Unpin()
	args := make([]uint64, (len(l.Args)+7)/8)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&args[0])), len(l.Args)), l.Args)
	pin.Pin(&args[0])
	last := len(l.Buffers)
	addr[last], size[last], readonly[last] = uint64(uintptr(unsafe.Pointer(&args[0]))), uint64(len(l.Args)), 1
	shape := [4]uint32{l.Grid[0], l.Grid[1], l.Grid[2], uint32(l.Kernel.Threads)}
	checks := uint32(0)
	if d.lib.checks {
		checks = 1
	}
	msg := make([]byte, 512)
	if d.lib.launch(fn, &addr[0], &size[0], &readonly[0], &shape[0], checks, d.Seed, uint32(runtime.GOMAXPROCS(0)), &msg[0], uint32(len(msg))) != 0 {
		return errors.New(string(msg[:bytes.IndexByte(msg, 0)]))
	}
	return nil
}
