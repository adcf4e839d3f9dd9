// Package gpu is the hardware line on any device that runs the kernels of metal/kernels: it
// checks arguments, keeps the memory of weights, buffers and caches, and records launches.
// What is left to a [Driver] is memory and running launches; Metal, CUDA and the checking
// runtime are each a Driver and nothing more.
//
// Start with [New]. A Device serves one goroutine, as backend.Device says.
package gpu

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
	"tfbatch/quant"
)

// Driver is a GPU. The device calls it from its own goroutine only, and never after Close.
type Driver interface {
	// Name is the device's short name, "cuda", which errors begin with.
	Name() string
	// Alloc makes zeroed memory, aligned to 256 bytes, that lives until Close.
	Alloc(bytes int64) (kernels.Mem, error)
	Upload(dst kernels.Mem, at int64, data []byte) error
	Download(dst []byte, src kernels.Mem, at int64) error
	// Run runs launches in order, each seeing what those before it wrote, and waits.
	Run(launches []kernels.Launch) error
	// Close frees everything.
	Close() error
}

// Device is a backend.Device on a driver.
type Device struct {
	drv    Driver
	stage  kernels.Mem // the host's index tables of the pass in progress
	part   kernels.Mem // scratch of attention
	sums   kernels.Mem // scratch of matrix products
	limits Limits
	closed bool

	// unnoted is memory that Pass.note leaves out: scratch, which an operator writes before it reads it, and rings,
	// of which Pass.saveRing knows more.
	unnoted map[kernels.Mem]bool
}

const (
	stageBytes = 4 << 20  // index tables of a pass of 4096 rows over a million keys, with room
	partBytes  = 64 << 20 // 512 rows of 32 heads over 15 pages; longer ones take more launches
)

// New makes a device on d, which it then owns.
func New(d Driver) (*Device, error) {
	stage, err := d.Alloc(stageBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name(), err)
	}
	dev := &Device{drv: d, stage: stage, limits: Limits{Work: math.MaxInt64}, unnoted: map[kernels.Mem]bool{}}
	if limited, ok := d.(Limited); ok {
		dev.limits = limited.Limits()
	}
	return dev, nil
}

// Name implements [backend.Device].
func (d *Device) Name() string { return d.drv.Name() }

// Close implements [backend.Device].
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.drv.Close()
}

// Timed is a Driver that knows how long its GPU worked.
type Timed interface {
	Driver
	Busy() time.Duration
}

// Busy implements [backend.TimedDevice].
func (d *Device) Busy() time.Duration {
	if t, ok := d.drv.(Timed); ok && !d.closed {
		return t.Busy()
	}
	return 0
}

// Begin implements [backend.Device].
func (d *Device) Begin() backend.Pass { return &Pass{dev: d} }

// alloc reserves memory of n·sizes bytes for what.
func (d *Device) alloc(what string, sizes ...int64) (kernels.Mem, error) {
	if d.closed {
		return nil, d.errorf("%s: the device is closed", what)
	}
	bytes := int64(1)
	for _, s := range sizes {
		if s <= 0 {
			return nil, d.errorf("%s of sizes %v: every size must be above zero", what, sizes)
		}
		if bytes > maxBytes/s {
			return nil, d.errorf("%s of sizes %v: above %d bytes", what, sizes, int64(maxBytes))
		}
		bytes *= s
	}
	m, err := d.drv.Alloc(bytes)
	if err != nil {
		return nil, d.errorf("%s of %d bytes: %w", what, bytes, err)
	}
	return m, nil
}

// maxBytes is more than any device has.
const maxBytes = 1 << 46

func (d *Device) errorf(format string, args ...any) error {
	return fmt.Errorf(d.Name()+": "+format, args...)
}

func whole(m kernels.Mem) kernels.Span { return kernels.Span{Mem: m, Len: m.Bytes()} }

// NewWeight implements [backend.Device].
func (d *Device) NewWeight(s backend.WeightShape) (backend.Weight, error) {
	l := kernels.Layout{Format: s.Format, Experts: s.Experts, Rows: s.Rows, Cols: s.Cols}
	if err := l.Check(); err != nil {
		return nil, d.errorf("%w", err)
	}
	if s.Format.Kind == quant.Affine && s.ScaleKind != quant.BF16 && s.ScaleKind != quant.F16 && s.ScaleKind != quant.F32 {
		return nil, d.errorf("%v weight with scales in %v, want bf16, f16 or f32", s.Format, quant.Format{Kind: s.ScaleKind})
	}
	if l.Experts > kernels.MaxExperts {
		return nil, d.errorf("weight of %d experts, the kernels take %d", l.Experts, kernels.MaxExperts)
	}
	// The product is checked before the layout computes with it.
	if _, err := product(int64(s.Experts), int64(s.Rows)+32, int64(s.Cols)+64, 8); err != nil {
		return nil, d.errorf("weight: %w", err)
	}
	codes, err := d.alloc("weight", l.CodeBytes())
	if err != nil {
		return nil, err
	}
	w := &Weight{dev: d, shape: s, w: kernels.Weight{Layout: l, Codes: whole(codes)}}
	if s.Format.Kind != quant.Affine {
		return w, nil
	}
	scales, err := d.alloc("scales", l.ScaleBytes(s.ScaleKind))
	if err != nil {
		return nil, err
	}
	w.w.Scales, w.w.ScaleKind = whole(scales), s.ScaleKind
	return w, nil
}

func product(sizes ...int64) (int64, error) {
	n := int64(1)
	for _, s := range sizes {
		if s <= 0 || n > maxBytes/s {
			return 0, fmt.Errorf("sizes %v: above %d bytes", sizes, int64(maxBytes))
		}
		n *= s
	}
	return n, nil
}

// Fill implements [backend.Device].
func (d *Device) Fill(w backend.Weight, at backend.Slot, m quant.Matrix) error {
	own, ok := w.(*Weight)
	if !ok || own == nil || own.dev != d || d.closed {
		return d.errorf("fill: the weight is not of this device, or the device is closed")
	}
	if err := m.Check(); err != nil {
		return d.errorf("fill: %w", err)
	}
	s := own.shape
	if m.Format != s.Format || m.Cols != s.Cols {
		return d.errorf("fill: %v matrix of %d columns into %v weight of %d", m.Format, m.Cols, s.Format, s.Cols)
	}
	if at.Expert < 0 || at.Expert >= s.Experts || at.Row < 0 || at.Row > s.Rows-m.Rows {
		return d.errorf("fill: %d rows at expert %d, row %d, of %d experts with %d rows", m.Rows, at.Expert, at.Row, s.Experts, s.Rows)
	}
	if s.Format.Kind == quant.Affine && m.ScaleKind != s.ScaleKind {
		return d.errorf("fill: scales in %v into a weight with scales in %v", quant.Format{Kind: m.ScaleKind}, quant.Format{Kind: s.ScaleKind})
	}
	for _, p := range own.w.Patches(at.Expert, at.Row, m) {
		if err := d.patch(own, p); err != nil {
			return d.errorf("fill: %w", err)
		}
	}
	return nil
}

// patch packs one patch on the host's cores and sends it.
func (d *Device) patch(w *Weight, p kernels.Patch) error {
	codes, scales := make([]byte, p.CodesLen), make([]byte, p.ScalesLen)
	if p.Partial {
		if err := d.drv.Download(codes, w.w.Codes.Mem, p.Codes); err != nil {
			return err
		}
		if err := d.download(scales, w.w.Scales.Mem, p.Scales); err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), p.Tiles())
	for i := range workers {
		group.Go(func() {
			for t := i; t < p.Tiles(); t += workers {
				p.Pack(codes, scales, t)
			}
		})
	}
	group.Wait()
	if err := d.drv.Upload(w.w.Codes.Mem, p.Codes, codes); err != nil || len(scales) == 0 {
		return err
	}
	return d.drv.Upload(w.w.Scales.Mem, p.Scales, scales)
}

func (d *Device) download(dst []byte, src kernels.Mem, at int64) error {
	if len(dst) == 0 {
		return nil
	}
	return d.drv.Download(dst, src, at)
}

// NewBuffer implements [backend.Device].
func (d *Device) NewBuffer(rows, cols int) (backend.Buffer, error) {
	m, err := d.alloc("buffer", int64(rows), int64(cols), 4)
	if err != nil {
		return nil, err
	}
	return &Buffer{dev: d, mem: m, rows: rows, cols: cols}, nil
}

// Write implements [backend.Device].
func (d *Device) Write(b backend.Buffer, data []float32) error {
	own, ok := b.(*Buffer)
	if !ok || own == nil || own.dev != d || d.closed {
		return d.errorf("write: the buffer is not of this device, or the device is closed")
	}
	if len(data) > own.rows*own.cols {
		return d.errorf("write: %d values into a buffer of %d", len(data), own.rows*own.cols)
	}
	if len(data) == 0 {
		return nil
	}
	clean := make([]float32, len(data))
	for i, x := range data {
		clean[i] = backend.Flush(x)
	}
	return d.drv.Upload(own.mem, 0, bytesOf(clean))
}

// bytesOf views values as memory; every device is little-endian, as the hosts are.
func bytesOf[T int32 | float32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// NewKV implements [backend.Device].
func (d *Device) NewKV(s backend.KVShape) (backend.KV, error) {
	if s.Dim > kernels.MaxDim {
		return nil, d.errorf("kv: heads of %d, the kernels take %d", s.Dim, kernels.MaxDim)
	}
	kv := &KV{dev: d, shape: s}
	if _, err := product(int64(s.Layers), int64(s.Pages), int64(s.Heads), int64(s.Dim)); err != nil {
		return nil, d.errorf("kv: %w", err)
	}
	var err error
	if kv.keys, err = d.alloc("keys", int64(s.Layers), int64(s.Pages), kv.cache(0).PageBytes()); err != nil {
		return nil, err
	}
	kv.values, err = d.alloc("values", int64(s.Layers), int64(s.Pages), kv.cache(0).PageBytes())
	return kv, err
}

// NewConv implements [backend.ConvDevice].
func (d *Device) NewConv(s backend.ConvShape) (backend.Conv, error) {
	if s.Kernel <= 0 {
		return nil, d.errorf("conv: kernel of %d", s.Kernel)
	}
	m, err := d.alloc("conv", int64(s.Layers), int64(s.Lanes), int64(s.Ring), int64(s.Channels), 4)
	if err != nil {
		return nil, err
	}
	d.unnoted[m] = true
	return &Conv{dev: d, shape: s, mem: m}, nil
}

// NewRoutes implements [backend.MoEDevice].
func (d *Device) NewRoutes(rows, topK int) (backend.Routes, error) {
	pairs, err := product(int64(rows), int64(topK))
	if err != nil || pairs > maxGrid {
		return nil, d.errorf("routes: %d rows of %d experts, the kernels take %d pairs", rows, topK, maxGrid)
	}
	r := &Routes{dev: d, rows: rows, all: rows, topK: topK, known: new(int)}
	for _, m := range []struct {
		to    *kernels.Mem
		bytes int64
	}{{&r.ids, 4 * pairs}, {&r.weights, 4 * pairs}, {&r.order, 4 * pairs}, {&r.blocks, 12 * pairs}} {
		if *m.to, err = d.alloc("routes", m.bytes); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// maxGrid is CUDA's limit for the second and third size of a grid.
const maxGrid = 65535
