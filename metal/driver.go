package metal

import (
	"errors"
	"fmt"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/internal/gpu"
	"tfbatch/metal/kernels"
)

// Metal's numbers.
const (
	languageVersion     = 3<<16 | 1 // 3.1, macOS 14
	mathModeSafe        = 0         // MTLMathModeSafe
	mathPrecise         = 1         // MTLMathFloatingPointFunctionsPrecise
	familyApple7        = 1007      // MTLGPUFamilyApple7, M1: 32-wide simdgroups with shuffles
	commandCompleted    = 4         // MTLCommandBufferStatusCompleted
	storageShared       = 0         // MTLResourceStorageModeShared
	threadsOfSimdgroup  = 32
	codeTimeout         = 2 // MTLCommandBufferErrorTimeout
	interactivityAdvice = "; the display was kept waiting: set AGX_RELAX_CDM_CTXSTORE_TIMEOUT=1 or let the display sleep"
)

// driver is a gpu.Driver on a Metal device.
type driver struct {
	*host
	limits
	device, queue id
	residency     id // nil before macOS 15
	settled       bool
	memory        []*memory
	used, budget  int64
	busy          float64       // seconds that the GPU worked
	libraries     map[string]id // by kernel file
	pipelines     map[*kernels.Kernel]id
}

// memory is an MTLBuffer that the CPU shares.
type memory struct {
	buffer   id
	contents uintptr
	bytes    int64
}

// Bytes implements [kernels.Mem].
func (m *memory) Bytes() int64 { return m.bytes }

func (m *memory) slice(at, n int64) []byte {
	return unsafe.Slice((*byte)(pointer(m.contents+uintptr(at))), n)
}

// open makes a device on a runtime.
func open(rt objc) (backend.Device, error) { return openWith(rt, usual) }

func openWith(rt objc, l limits) (backend.Device, error) {
	d := &driver{host: newHost(rt), limits: l, libraries: map[string]id{}, pipelines: map[*kernels.Kernel]id{}}
	if err := d.with(d.start); err != nil {
		return nil, errors.Join(fmt.Errorf("metal: %w", err), d.Close())
	}
	dev, err := gpu.New(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return dev, nil
}

func (d *driver) start() error {
	if d.device = d.createSystemDefaultDevice(); d.device == 0 {
		return errors.New("this machine has no Metal device; use device: cpu")
	}
	if !d.is(d.device, "supportsFamily:", familyApple7) {
		return errors.New("the GPU is older than Apple's M1; use device: cpu")
	}
	d.budget = int64(d.call(d.device, "recommendedMaxWorkingSetSize"))
	var err error
	if d.queue, err = d.object(d.device, "newCommandQueue"); err != nil {
		return err
	}
	return d.startResidency()
}

// startResidency keeps all memory wired where the system can: it unwires idle buffers, and
// bringing them back takes as long as a token.
func (d *driver) startResidency() error {
	if !d.responds(d.device, "newResidencySetWithDescriptor:error:") {
		return nil
	}
	desc, err := d.object(d.class("MTLResidencySetDescriptor"), "new")
	if err != nil {
		return err
	}
	defer d.release(desc)
	if d.residency, err = d.checked(d.device, "newResidencySetWithDescriptor:error:", uintptr(desc)); err != nil {
		return err
	}
	d.call(d.queue, "addResidencySet:", uintptr(d.residency))
	return nil
}

func (d *driver) release(obj id) {
	if obj != 0 {
		d.call(obj, "release")
	}
}

// Name implements gpu.Driver.
func (d *driver) Name() string { return "metal" }

// Alloc implements gpu.Driver.
func (d *driver) Alloc(bytes int64) (kernels.Mem, error) {
	if d.used+bytes > d.budget {
		return nil, fmt.Errorf("%d bytes on top of %d, the GPU's working set is %d", bytes, d.used, d.budget)
	}
	m := &memory{bytes: bytes}
	err := d.with(func() error {
		var err error
		if m.buffer, err = d.object(d.device, "newBufferWithLength:options:", uintptr(bytes), storageShared); err != nil {
			return err
		}
		d.memory = append(d.memory, m)
		if m.contents = d.call(m.buffer, "contents"); m.contents == 0 {
			return errors.New("contents gave nothing")
		}
		clear(m.slice(0, bytes))
		if d.residency != 0 {
			d.call(d.residency, "addAllocation:", uintptr(m.buffer))
			d.settled = false
		}
		d.used += bytes
		return nil
	})
	return m, err
}

// Upload implements gpu.Driver.
func (d *driver) Upload(dst kernels.Mem, at int64, data []byte) error {
	copy(dst.(*memory).slice(at, int64(len(data))), data)
	return nil
}

// Download implements gpu.Driver.
func (d *driver) Download(dst []byte, src kernels.Mem, at int64) error {
	copy(dst, src.(*memory).slice(at, int64(len(dst))))
	return nil
}

func (d *driver) encode(encoder id, l kernels.Launch) error {
	if len(l.Buffers) != len(l.Kernel.Buffers) || len(l.Args) != l.Kernel.ArgsSize || len(l.Args) > argsBytes {
		return fmt.Errorf("%d buffers and %d bytes of arguments, want %d and %d", len(l.Buffers), len(l.Args), len(l.Kernel.Buffers), l.Kernel.ArgsSize)
	}
	d.call(encoder, "setComputePipelineState:", uintptr(d.pipelines[l.Kernel]))
	for i, b := range l.Buffers {
		buffer, offset := id(0), int64(0)
		if b.Mem != nil {
			buffer, offset = b.Mem.(*memory).buffer, b.Off
		}
		d.call(encoder, "setBuffer:offset:atIndex:", uintptr(buffer), uintptr(offset), uintptr(i))
	}
	p := d.pinned
	copy(p.args[:], l.Args)
	d.call(encoder, "setBytes:length:atIndex:", uintptr(unsafe.Pointer(&p.args[0])), uintptr(len(l.Args)), uintptr(len(l.Buffers)))
	p.grid = size{uint64(l.Grid[0]), uint64(l.Grid[1]), uint64(l.Grid[2])}
	p.group = size{uint64(l.Kernel.Threads), 1, 1}
	d.call(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", uintptr(unsafe.Pointer(&p.grid)), uintptr(unsafe.Pointer(&p.group)))
	return nil
}

// pipeline compiles a kernel when it is first used.
func (d *driver) pipeline(k *kernels.Kernel) (id, error) {
	if p := d.pipelines[k]; p != 0 {
		return p, nil
	}
	library, err := d.library(k.File)
	if err != nil {
		return 0, err
	}
	name, err := d.nsString(k.Name)
	if err != nil {
		return 0, err
	}
	function, err := d.object(library, "newFunctionWithName:", uintptr(name))
	if err != nil {
		return 0, err
	}
	defer d.release(function)
	p, err := d.checked(d.device, "newComputePipelineStateWithFunction:error:", uintptr(function))
	if err != nil {
		return 0, err
	}
	if err := d.checkPipeline(p, k); err != nil {
		d.release(p)
		return 0, err
	}
	d.pipelines[k] = p
	return p, nil
}

// checkPipeline holds a compiled kernel to what its text takes for granted.
func (d *driver) checkPipeline(p id, k *kernels.Kernel) error {
	if width := d.call(p, "threadExecutionWidth"); width != threadsOfSimdgroup {
		return fmt.Errorf("simdgroups of %d threads, want %d", width, threadsOfSimdgroup)
	}
	if most := d.call(p, "maxTotalThreadsPerThreadgroup"); most < uintptr(k.Threads) {
		return fmt.Errorf("the GPU runs %d threads of it in a group, want %d", most, k.Threads)
	}
	return nil
}

// library compiles a kernel file when it is first used.
func (d *driver) library(file string) (id, error) {
	if l := d.libraries[file]; l != 0 {
		return l, nil
	}
	text, err := kernels.Source(file)
	if err != nil {
		return 0, err
	}
	source, err := d.nsString(text)
	if err != nil {
		return 0, err
	}
	options, err := d.object(d.class("MTLCompileOptions"), "new")
	if err != nil {
		return 0, err
	}
	defer d.release(options)
	// The default version follows the SDK that the executable names, and Go's linker names an
	// old one.
	d.call(options, "setLanguageVersion:", languageVersion)
	if d.responds(options, "setMathMode:") {
		d.call(options, "setMathMode:", mathModeSafe)
		d.call(options, "setMathFloatingPointFunctions:", mathPrecise)
	} else {
		d.call(options, "setFastMathEnabled:", 0)
	}
	l, err := d.checked(d.device, "newLibraryWithSource:options:error:", uintptr(source), uintptr(options))
	if err != nil {
		return 0, err
	}
	d.libraries[file] = l
	return l, nil
}

// Close implements gpu.Driver.
func (d *driver) Close() error {
	err := d.with(func() error {
		for _, p := range d.pipelines {
			d.release(p)
		}
		for _, l := range d.libraries {
			d.release(l)
		}
		for _, m := range d.memory {
			d.release(m.buffer)
		}
		d.release(d.residency)
		d.release(d.queue)
		d.release(d.device)
		return nil
	})
	d.free()
	return err
}
