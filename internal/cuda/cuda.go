// Package cuda is the device of NVIDIA GPUs: the Metal kernels, compiled to PTX, through the
// driver library libcuda.so.1. There is no cgo and no CUDA toolkit; the driver compiles the
// PTX for the GPU that it finds (compute capability 8.0 and newer) when a kernel is first used.
//
// Start with [Open]. The folder ptx is generated; see metal/kernels.
package cuda

import (
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"runtime"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/internal/gpu"
	"tfbatch/metal/kernels"
)

//go:embed ptx
var ptx embed.FS

// Open makes a device on the first GPU.
func Open() (backend.Device, error) {
	lookup, err := loadLibrary()
	if err != nil {
		return nil, err
	}
	d, err := open(lookup)
	if err != nil {
		return nil, err
	}
	dev, err := gpu.New(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return dev, nil
}

// driver is a gpu.Driver on a CUDA context.
type driver struct {
	api
	device  int32
	context uintptr
	memory  []*memory
	modules map[string]uintptr          // by kernel file
	kernels map[*kernels.Kernel]uintptr // CUfunction
	params  *params
	stream  uintptr // what launches go to; copies, which go to the default one, wait for it
	rounds  []round // by last use
	key     []byte  // of the round that Run is given
}

// memory is one allocation on the GPU.
type memory struct {
	addr  uint64
	bytes int64
}

// Bytes implements [kernels.Mem].
func (m *memory) Bytes() int64 { return m.bytes }

const (
	attributeMajor = 75 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
	leastMajor     = 8  // PTX is made for sm_80
)

func open(lookup func(name string) (uintptr, error)) (*driver, error) {
	d := &driver{modules: map[string]uintptr{}, kernels: map[*kernels.Kernel]uintptr{}}
	if err := d.resolve(lookup); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.start(); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d.params = newParams()
	return d, nil
}

func (d *driver) start() error {
	if err := d.call("cuInit", d.init, 0); err != nil {
		return err
	}
	if err := d.call("cuDeviceGet", d.deviceGet, uintptr(unsafe.Pointer(&d.device)), 0); err != nil {
		return err
	}
	var major int32
	if err := d.call("cuDeviceGetAttribute", d.deviceGetAttribute, uintptr(unsafe.Pointer(&major)), attributeMajor, uintptr(d.device)); err != nil {
		return err
	}
	if major < leastMajor {
		return fmt.Errorf("the GPU has compute capability %d, want %d.0 or newer; use device: cpu", major, leastMajor)
	}
	if err := d.call("cuDevicePrimaryCtxRetain", d.primaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.device)); err != nil {
		return err
	}
	err := d.with(func() error { return d.call("cuStreamCreate", d.streamCreate, uintptr(unsafe.Pointer(&d.stream)), 0) })
	if err != nil {
		return errors.Join(err, d.call("cuDevicePrimaryCtxRelease", d.primaryCtxRelease, uintptr(d.device)))
	}
	return nil
}

// with runs fn with the context current: contexts belong to threads, and a goroutine may
// change threads between any two calls.
func (d *driver) with(fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.call("cuCtxSetCurrent", d.ctxSetCurrent, d.context); err != nil {
		return err
	}
	return fn()
}

// Name implements gpu.Driver.
func (d *driver) Name() string { return "cuda" }

// Alloc implements gpu.Driver.
func (d *driver) Alloc(bytes int64) (kernels.Mem, error) {
	m := &memory{bytes: bytes}
	err := d.with(func() error {
		if err := d.call("cuMemAlloc", d.memAlloc, uintptr(unsafe.Pointer(&m.addr)), uintptr(bytes)); err != nil {
			return err
		}
		d.memory = append(d.memory, m)
		return d.call("cuMemsetD8", d.memset, uintptr(m.addr), 0, uintptr(bytes))
	})
	return m, err
}

// Upload implements gpu.Driver.
func (d *driver) Upload(dst kernels.Mem, at int64, data []byte) error {
	m := dst.(*memory)
	return d.with(func() error {
		return d.call("cuMemcpyHtoD", d.copyIn, uintptr(m.addr)+uintptr(at), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	})
}

// Download implements gpu.Driver.
func (d *driver) Download(dst []byte, src kernels.Mem, at int64) error {
	m := src.(*memory)
	return d.with(func() error {
		return d.call("cuMemcpyDtoH", d.copyOut, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(m.addr)+uintptr(at), uintptr(len(dst)))
	})
}

// Run implements gpu.Driver. Launches of one stream run in order.
func (d *driver) Run(launches []kernels.Launch) error {
	return d.with(func() error {
		graph, err := d.graph(launches)
		switch {
		case err != nil:
			return err
		case graph != 0:
			err = d.call("cuGraphLaunch", d.graphLaunch, graph, d.stream)
		default:
			err = d.each(launches)
		}
		if err != nil {
			return err
		}
		return d.call("cuCtxSynchronize", d.ctxSynchronize)
	})
}

// each gives launches to the stream one by one.
func (d *driver) each(launches []kernels.Launch) error {
	for _, l := range launches {
		if err := d.launch(l); err != nil {
			return fmt.Errorf("%s: %w", l.Kernel.Name, err)
		}
	}
	return nil
}

func (d *driver) launch(l kernels.Launch) error {
	f, err := d.function(l.Kernel)
	if err != nil {
		return err
	}
	if err := d.params.set(l); err != nil {
		return err
	}
	return d.call("cuLaunchKernel", d.launchKernel, f, uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
		uintptr(l.Kernel.Threads), 1, 1, 0, d.stream, 0, uintptr(unsafe.Pointer(&d.params.extra[0])))
}

// function compiles the file of a kernel when it is first used.
func (d *driver) function(k *kernels.Kernel) (uintptr, error) {
	if f, ok := d.kernels[k]; ok {
		return f, nil
	}
	module, ok := d.modules[k.File]
	if !ok {
		text, err := readPTX(k.File)
		if err != nil {
			return 0, err
		}
		text = append(text, 0)
		if err := d.call("cuModuleLoadData", d.moduleLoadData, uintptr(unsafe.Pointer(&module)), uintptr(unsafe.Pointer(&text[0]))); err != nil {
			return 0, err
		}
		d.modules[k.File] = module
	}
	var f uintptr
	name := append([]byte(k.Name), 0)
	if err := d.call("cuModuleGetFunction", d.moduleGetFunction, uintptr(unsafe.Pointer(&f)), module, uintptr(unsafe.Pointer(&name[0]))); err != nil {
		return 0, err
	}
	d.kernels[k] = f
	return f, nil
}

// readPTX is the PTX of a kernel file.
func readPTX(file string) ([]byte, error) {
	f, err := ptx.Open("ptx/" + file + ".ptx.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Close implements gpu.Driver.
func (d *driver) Close() error {
	err := d.with(func() error {
		var err error
		for _, r := range d.rounds {
			err = errors.Join(err, d.drop(r))
		}
		err = errors.Join(err, d.call("cuStreamDestroy", d.streamDestroy, d.stream))
		for _, m := range d.memory {
			err = errors.Join(err, d.call("cuMemFree", d.memFree, uintptr(m.addr)))
		}
		for _, m := range d.modules {
			err = errors.Join(err, d.call("cuModuleUnload", d.moduleUnload, m))
		}
		return err
	})
	d.rounds, d.memory, d.modules = nil, nil, nil
	d.params.free()
	return errors.Join(err, d.call("cuDevicePrimaryCtxRelease", d.primaryCtxRelease, uintptr(d.device)))
}
