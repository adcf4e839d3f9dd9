package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"tfbatch/internal/backend"
	"tfbatch/internal/gpu"
	"tfbatch/metal/kernels"
)

// fake is a driver library of callbacks: memory is the host's, and a launch is written down.
type fake struct {
	fail     string             // the function that returns an error
	symbols  map[string]uintptr // by name
	names    map[uintptr]string // kernels by handle
	memory   map[uintptr][]byte
	launches []string
	contexts int
	capture  bool       // launches go to the last of graphs
	graphs   [][]string // by handle, less one
	held     int        // streams, graphs and their executable forms
	pin      runtime.Pinner
}

const failure = 700 // CUDA_ERROR_ILLEGAL_ADDRESS

func newFake(t testing.TB) *fake {
	f := &fake{symbols: map[string]uintptr{}, names: map[uintptr]string{}, memory: map[uintptr][]byte{}}
	t.Cleanup(f.pin.Unpin)
	f.add("cuInit", func(uintptr) uintptr { return 0 })
	f.add("cuDeviceGet", func(dev *int32, i uintptr) uintptr { return 0 })
	f.add("cuDeviceGetAttribute", func(v *int32, what, dev uintptr) uintptr { *v = 9; return 0 })
	f.add("cuDevicePrimaryCtxRetain", func(ctx *uintptr, dev uintptr) uintptr { *ctx = 7; f.contexts++; return 0 })
	f.add("cuDevicePrimaryCtxRelease_v2", func(dev uintptr) uintptr { f.contexts--; return 0 })
	f.add("cuCtxSetCurrent", func(ctx uintptr) uintptr { return 0 })
	f.add("cuCtxSynchronize", func() uintptr { return 0 })
	f.add("cuModuleLoadData", func(m *uintptr, text *byte) uintptr { *m = 11; return 0 })
	f.add("cuModuleUnload", func(m uintptr) uintptr { return 0 })
	f.add("cuModuleGetFunction", func(fn *uintptr, m uintptr, name *byte) uintptr {
		*fn = uintptr(len(f.names) + 1)
		f.names[*fn] = text(name)
		return 0
	})
	f.add("cuMemAlloc_v2", func(p *uintptr, n uintptr) uintptr {
		b := make([]byte, n)
		f.pin.Pin(&b[0])
		*p = uintptr(unsafe.Pointer(&b[0]))
		f.memory[*p] = b
		return 0
	})
	f.add("cuMemFree_v2", func(p uintptr) uintptr { delete(f.memory, p); return 0 })
	f.add("cuMemsetD8_v2", func(p, v, n uintptr) uintptr { clear(f.at(p, n)); return 0 })
	f.add("cuMemcpyHtoD_v2", func(to uintptr, from *byte, n uintptr) uintptr {
		copy(f.at(to, n), unsafe.Slice(from, n))
		return 0
	})
	f.add("cuMemcpyDtoH_v2", func(to *byte, from, n uintptr) uintptr {
		copy(unsafe.Slice(to, n), f.at(from, n))
		return 0
	})
	f.add("cuLaunchKernel", func(fn, gx, gy, gz, bx, by, bz, shared, stream, params uintptr, extra *[5]uintptr) uintptr {
		size := **(**uint64)(unsafe.Pointer(&extra[3]))
		block := unsafe.Slice(*(**byte)(unsafe.Pointer(&extra[1])), size)
		line := fmt.Sprintf("%s %d,%d,%d x %d: %x", f.names[fn], gx, gy, gz, bx, block[size-4:])
		if stream != fakeStream {
			panic("cuda: a launch to another stream")
		}
		if f.capture {
			last := len(f.graphs) - 1
			f.graphs[last] = append(f.graphs[last], line)
			return 0
		}
		f.launches = append(f.launches, line)
		return 0
	})
	f.addGraphs()
	f.symbols["cuGetErrorName"] = purego.NewCallback(func(code uintptr, s **byte) uintptr { *s = unsafe.StringData("NAME\x00"); return 0 })
	f.symbols["cuGetErrorString"] = purego.NewCallback(func(code uintptr, s **byte) uintptr { *s = unsafe.StringData("a text\x00"); return 0 })
	return f
}

const fakeStream = 5

// addGraphs adds what records launches and runs the record.
func (f *fake) addGraphs() {
	f.add("cuStreamCreate", func(s *uintptr, flags uintptr) uintptr { *s = fakeStream; f.held++; return 0 })
	f.add("cuStreamDestroy_v2", func(s uintptr) uintptr { f.held--; return 0 })
	f.add("cuStreamBeginCapture_v2", func(s, mode uintptr) uintptr {
		f.capture, f.graphs = true, append(f.graphs, nil)
		return 0
	})
	f.add("cuStreamEndCapture", func(s uintptr, graph *uintptr) uintptr {
		f.capture, *graph = false, uintptr(len(f.graphs))
		f.held++
		return 0
	})
	f.add("cuGraphInstantiateWithFlags", func(exec *uintptr, graph, flags uintptr) uintptr { *exec = graph; f.held++; return 0 })
	f.add("cuGraphDestroy", func(graph uintptr) uintptr { f.held--; return 0 })
	f.add("cuGraphExecDestroy", func(exec uintptr) uintptr { f.held--; return 0 })
	f.add("cuGraphLaunch", func(exec, s uintptr) uintptr {
		f.launches = append(f.launches, f.graphs[exec-1]...)
		return 0
	})
}

// add makes fn a C function that fails when it is the one to fail.
func (f *fake) add(name string, fn any) {
	f.symbols[name] = purego.NewCallback(failing(f, name, fn))
}

// failing wraps the shapes of function that the fake has.
func failing(f *fake, name string, fn any) any {
	bad := func() bool { return f.fail == name }
	switch fn := fn.(type) {
	case func() uintptr:
		return func() uintptr { return pick(bad(), fn) }
	case func(uintptr) uintptr:
		return func(a uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a) }) }
	case func(a, b uintptr) uintptr:
		return func(a, b uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b) }) }
	case func(uintptr, *uintptr) uintptr:
		return func(a uintptr, b *uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b) }) }
	case func(a *uintptr, b, c uintptr) uintptr:
		return func(a *uintptr, b, c uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b, c) }) }
	case func(a, b, c uintptr) uintptr:
		return func(a, b, c uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b, c) }) }
	case func(*int32, uintptr) uintptr:
		return func(a *int32, b uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b) }) }
	case func(*int32, uintptr, uintptr) uintptr:
		return func(a *int32, b, c uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b, c) }) }
	case func(*uintptr, uintptr) uintptr:
		return func(a *uintptr, b uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b) }) }
	case func(*uintptr, *byte) uintptr:
		return func(a *uintptr, b *byte) uintptr { return pick(bad(), func() uintptr { return fn(a, b) }) }
	case func(*uintptr, uintptr, *byte) uintptr:
		return func(a *uintptr, b uintptr, c *byte) uintptr {
			return pick(bad(), func() uintptr { return fn(a, b, c) })
		}
	case func(uintptr, *byte, uintptr) uintptr:
		return func(a uintptr, b *byte, c uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b, c) }) }
	case func(*byte, uintptr, uintptr) uintptr:
		return func(a *byte, b, c uintptr) uintptr { return pick(bad(), func() uintptr { return fn(a, b, c) }) }
	case func(fn, gx, gy, gz, bx, by, bz, shared, stream, params uintptr, extra *[5]uintptr) uintptr:
		return func(a, b, c, d, e, g, h, i, j, k uintptr, l *[5]uintptr) uintptr {
			return pick(bad(), func() uintptr { return fn(a, b, c, d, e, g, h, i, j, k, l) })
		}
	}
	panic(fmt.Sprintf("cuda: fake %s is a %T", name, fn))
}

func pick(bad bool, fn func() uintptr) uintptr {
	if bad {
		return failure
	}
	return fn()
}

func text(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// at is the memory behind an address, which must lie in one allocation.
func (f *fake) at(p, n uintptr) []byte {
	for base, b := range f.memory {
		if p >= base && p+n <= base+uintptr(len(b)) {
			return b[p-base:][:n]
		}
	}
	panic(fmt.Sprintf("cuda: %d bytes at %x are no allocation", n, p))
}

func (f *fake) lookup(name string) (uintptr, error) {
	if f.fail == "lookup "+name {
		return 0, errors.New("no symbol " + name)
	}
	return f.symbols[name], nil
}

// forward opens a device on the fake and runs a small pass.
func (f *fake) forward() (err error) {
	drv, err := open(f.lookup)
	if err != nil {
		return err
	}
	d, err := gpu.New(drv)
	if err != nil {
		return errors.Join(err, drv.Close())
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	a, err := d.NewBuffer(2, 300)
	if err != nil {
		return err
	}
	if err := d.Write(a, []float32{1, 2, 3}); err != nil {
		return err
	}
	got := make([]float32, 600)
	row := mustBuffer(d)
	for range 3 { // one by one, recorded, and again from the record
		p := d.Begin()
		p.Add(a, a, a)
		p.Gather(row, a, []int32{1})
		p.Read(got, a)
		if err := p.Commit(context.Background()); err != nil {
			return err
		}
	}
	if !slices.Equal(got[:4], []float32{1, 2, 3, 0}) {
		return fmt.Errorf("read %v", got[:4])
	}
	return nil
}

func mustBuffer(d backend.Device) backend.Buffer {
	b, err := d.NewBuffer(1, 300)
	if err != nil {
		return nil // the pass then fails with it
	}
	return b
}

func TestLaunches(t *testing.T) {
	f := newFake(t)
	if err := f.forward(); err != nil {
		t.Fatal(err)
	}
	want := []string{"add 3,1,1 x 256: 58020000", "gather 2,1,1 x 256: 2c010000"}
	if want := slices.Repeat(want, 3); !slices.Equal(f.launches, want) {
		t.Errorf("launches %q, want %q", f.launches, want)
	}
	if len(f.graphs) != 1 {
		t.Errorf("%d graphs of one round", len(f.graphs))
	}
	if len(f.memory) != 0 || f.contexts != 0 || f.held != 0 {
		t.Errorf("%d allocations, %d contexts, %d streams and graphs left", len(f.memory), f.contexts, f.held)
	}
}

// TestEveryFailureIsAnError makes each function of the driver fail in turn.
func TestEveryFailureIsAnError(t *testing.T) {
	f := newFake(t)
	for name := range f.symbols {
		if strings.HasPrefix(name, "cuGetError") {
			continue
		}
		f.fail = name
		err := f.forward()
		if want := strings.TrimSuffix(name, "_v2") + ": error 700, NAME: a text"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails: got %v, want %q", name, err, want)
		}
		f.fail = "lookup " + name
		if err := f.forward(); err == nil || !strings.Contains(err.Error(), "no symbol "+name) {
			t.Errorf("%s is missing: got %v", name, err)
		}
	}
}

func TestParams(t *testing.T) {
	p := newParams()
	defer p.free()
	k := &kernels.Kernel{Buffers: make([]kernels.Param, 3), ArgsSize: 8}
	l := kernels.Launch{Kernel: k, Args: []byte{1, 2, 3, 4, 5, 6, 7, 8}, Buffers: []kernels.Span{
		{Mem: &memory{addr: 0x1000, bytes: 64}, Off: 16, Len: 4}, {}, {Mem: &memory{addr: 0x2000, bytes: 64}},
	}}
	if err := p.set(l); err != nil {
		t.Fatal(err)
	}
	want := binary.LittleEndian.AppendUint64(nil, 0x1010)
	want = binary.LittleEndian.AppendUint64(want, 0)
	want = binary.LittleEndian.AppendUint64(want, 0x2000)
	want = append(want, l.Args...)
	if got := p.block[:p.size]; !bytes.Equal(got, want) {
		t.Errorf("block %x, want %x", got, want)
	}
	l.Args = l.Args[:4]
	if p.set(l) == nil {
		t.Error("a launch with half its arguments was accepted")
	}
}

// TestEveryKernelHasPTX holds the embedded PTX to the table of kernels.
func TestEveryKernelHasPTX(t *testing.T) {
	for _, k := range kernels.Kernels {
		text, err := readPTX(k.File)
		if err != nil || !bytes.Contains(text, []byte(".visible .entry "+k.Name+"(")) {
			t.Errorf("%s is not in the PTX of %s.metal: %v", k.Name, k.File, err)
		}
	}
}
