package cpu

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// Speed is a matrix product beside the limits of the machine, measured in turns in one run
// on the same threads, as medians.
type Speed struct {
	Device     string
	Rows       int
	K, N       int
	Format     quant.Format
	GBps       float64 // weight bytes that the product went through
	ReadGBps   float64 // the same bytes when they are only loaded
	GFLOPS     float64 // 2 for every multiply-add of the product
	PeakGFLOPS float64 // of fma on registers alone
}

// ShareOfRead is the product's speed as a share of the read bandwidth.
func (s Speed) ShareOfRead() float64 { return s.GBps / s.ReadGBps }

// ShareOfPeak is the product's speed as a share of the arithmetic limit.
func (s Speed) ShareOfPeak() float64 { return s.GFLOPS / s.PeakGFLOPS }

// MatMulSpeed measures rows times a weight [n, k]. It takes about half a second.
func MatMulSpeed(o Options, rows, k, n int, format quant.Format) (Speed, error) {
	d, err := Open(o)
	if err != nil {
		return Speed{}, err
	}
	defer d.Close()
	p, err := newTrial(d, rows, k, n, format)
	if err != nil {
		return Speed{}, err
	}
	l := newLimit(d, p.w)
	const rounds = 41 // short ones: a moment lost to another program then spoils few of them
	var product, read, peak []float64
	for range rounds {
		read = append(read, seconds(l.read))
		product = append(product, seconds(p.once))
		peak = append(peak, l.peak(o.Int8 && format.Kind == quant.Affine))
	}
	bytes, macs := float64(len(l.bytes)), float64(rows)*float64(k)*float64(n)
	return Speed{
		Device: d.Name(), Rows: rows, K: k, N: n, Format: format,
		GBps: bytes / median(product) / 1e9, ReadGBps: bytes / median(read) / 1e9,
		GFLOPS: 2 * macs / median(product) / 1e9, PeakGFLOPS: 2 * median(peak) / 1e9,
	}, nil
}

// trial is one matmul with everything it needs.
type trial struct {
	d      *Device
	dst, x backend.Buffer
	w      *Weight
}

func newTrial(d *Device, rows, k, n int, format quant.Format) (*trial, error) {
	w, err := d.NewWeight(backend.WeightShape{Experts: 1, Rows: n, Cols: k, Format: format})
	if err != nil {
		return nil, err
	}
	x, err := d.NewBuffer(rows, k)
	if err != nil {
		return nil, err
	}
	dst, err := d.NewBuffer(rows, n)
	if err != nil {
		return nil, err
	}
	// Speed does not depend on the values, as long as none is subnormal.
	some := func(ofRow int) []byte { return bytes.Repeat([]byte{0x3c}, n*ofRow) }
	scales := format.ScaleBytes(k, quant.BF16)
	err = d.Fill(w, backend.Slot{}, quant.Matrix{Rows: n, Cols: k, Format: format, Data: some(format.RowBytes(k)), Scales: some(scales), Biases: some(scales)})
	return &trial{d, dst, x, w.(*Weight)}, err
}

func (p *trial) once() { p.d.Begin().MatMul(p.dst, p.x, p.w) }

// limit is the task that loads bytes, or computes on registers.
type limit struct {
	d     *Device
	bytes []byte
	turns int // of a piece
	fma   int // of a turn
	macs  int // of a turn of products
	mode  limitMode
}

type limitMode uint8

const (
	reading limitMode = iota
	computing
	multiplying
)

func newLimit(d *Device, w *Weight) *limit {
	k := d.kernels
	return &limit{d: d, bytes: w.region.bytes, turns: 1 << 17, fma: k.peak(1), macs: k.dotPeak(1)}
}

func (l *limit) read()     { l.run(reading, ceilDiv(len(l.bytes), groupBytes)) }
func (l *limit) compute()  { l.run(computing, len(l.d.pool.workers)) }
func (l *limit) multiply() { l.run(multiplying, len(l.d.pool.workers)) }

func (l *limit) run(mode limitMode, pieces int) {
	l.mode = mode
	l.d.pool.run(l, pieces)
}

// work is what compute or multiply do, by the work of a turn.
func (l *limit) work(ofTurn int) float64 {
	return float64(l.turns) * float64(ofTurn) * float64(len(l.d.pool.workers))
}

// peak is the multiply-adds of a second, of codes or of floats.
func (l *limit) peak(ofCodes bool) float64 {
	if ofCodes {
		return l.work(l.macs) / seconds(l.multiply)
	}
	return l.work(l.fma) / seconds(l.compute)
}

func (l *limit) do(w *worker, piece int) {
	switch l.mode {
	case computing:
		l.d.kernels.peak(l.turns)
		return
	case multiplying:
		l.d.kernels.dotPeak(l.turns)
		return
	}
	const line = 256
	part := l.bytes[piece*groupBytes : min((piece+1)*groupBytes, len(l.bytes))]
	if n := len(part) / line * line; n > 0 {
		l.d.kernels.read(unsafe.Pointer(&part[0]), n)
	}
}

// seconds times f, as often as makes a millisecond.
func seconds(f func()) float64 {
	const least = time.Millisecond
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			f()
		}
		if took := time.Since(start); took >= least {
			return took.Seconds() / float64(n)
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// String is a line of a report.
func (s Speed) String() string {
	return fmt.Sprintf("%s: %d rows, K=%d N=%d %v: %.1f GB/s (%.0f %% of %.1f read), %.1f GFLOP/s (%.0f %% of %.1f peak)",
		s.Device, s.Rows, s.K, s.N, s.Format, s.GBps, 100*s.ShareOfRead(), s.ReadGBps, s.GFLOPS, 100*s.ShareOfPeak(), s.PeakGFLOPS)
}
