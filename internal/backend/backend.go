// Package backend is the line between models and hardware: what a device must do
// so that a forward pass can be written once. It is cut at the operators of a
// language model, not at tensor algebra, and every operator's order of arithmetic
// is fixed by ARITHMETIC.md beside this file: two devices give the same bits.
//
// Start with [Device] and [Pass]. Operators that only some families need are
// further interfaces ([ConvPass], [MoEPass], [TapPass]) which a Pass may also be;
// a family that needs one asserts it when the model is opened, not when it runs.
package backend

import (
	"context"
	"time"

	"tfbatch/quant"
)

// PageKeys is the number of consecutive positions in one KV page. It is also the
// attention chunk of ARITHMETIC.md, so paging cannot change a bit.
const PageKeys = 256

// Device owns memory and runs passes. One goroutine uses it; it may start its own
// threads inside an operator. What it made dies with Close.
type Device interface {
	Name() string
	// NewWeight reserves a weight; Fill then brings the bytes, one matrix at a time.
	NewWeight(WeightShape) (Weight, error)
	// Fill copies m into w at the given slot; m's bytes are free again on return.
	// It is called from one goroutine at a time, before the first pass that uses w.
	Fill(w Weight, at Slot, m quant.Matrix) error
	// NewBuffer makes a zeroed f32 buffer [rows, cols].
	NewBuffer(rows, cols int) (Buffer, error)
	// Write sets the first len(data) values of b: norm gains, rope tables, biases.
	Write(b Buffer, data []float32) error
	NewKV(KVShape) (KV, error)
	Begin() Pass
	Close() error
}

// WeightShape is the shape of a resident weight: Experts stacked matrices [Rows, Cols]
// (Experts is 1 for an ordinary one). Rows may join several matrices of the checkpoint,
// q, k and v for example.
type WeightShape struct {
	Experts, Rows, Cols int
	Format              quant.Format
	ScaleKind           quant.Kind // of scales and biases, where Format is affine
}

// Slot is where a checkpoint matrix goes inside a weight: rows Row.. of expert Expert.
type Slot struct{ Expert, Row int }

// Weight is a matrix in the device's own layout.
type Weight interface {
	Shape() WeightShape
	Bytes() int64 // resident size
}

// Buffer is an f32 matrix of activations on the device.
type Buffer interface {
	Shape() (rows, cols int)
	// Top is a view of the first n rows; it shares the memory.
	Top(n int) Buffer
}

// KVShape is a pool of KV pages. One page holds PageKeys positions of every layer.
type KVShape struct {
	Layers, Pages, Heads, Dim int
	F32                       bool // store f32 instead of bf16: arithmetic id fma-v1+kv32
}

// KV is a pool of KV pages on the device. Who owns which page is the engine's business.
type KV interface {
	Shape() KVShape
	Bytes() int64
}

// Rows places the flat rows of a batch: row i is position Pos[i] of lane Lane[i]. Rows of
// one lane are neighbours, in ascending and consecutive positions. Pages[l][c] is the page
// that holds keys PageKeys·c.. of lane l.
type Rows struct {
	Lane  []int32
	Pos   []int32
	Pages [][]int32
}

// Pairing says which two elements of a head RoPE turns together.
type Pairing uint8

// HalfSplit pairs i with i+D/2 (LFM2, Llama, Qwen3), Interleaved 2i with 2i+1 (the DSpark drafter).
const (
	HalfSplit Pairing = iota
	Interleaved
)

// Heads describes the attention heads of one layer. QNorm and KNorm are per-head gains [1, Dim],
// nil where the family has none. Rope is [positions, Dim]: Dim/2 cosines, then Dim/2 sines.
type Heads struct {
	Q, KV, Dim   int
	QNorm, KNorm Buffer
	Eps          float32
	Rope         Buffer
	Pairing      Pairing
}

// Pass records the operators of one forward; results may be used after Commit. Operators
// return no error: the first failure sticks and Commit reports it. An operator works on all
// rows of its dst; the row counts of its arguments must agree, and a mismatch is a failure.
// dst may be an argument only where it says so.
type Pass interface {
	// Embed sets dst[i] to row ids[i] of table. [n, H]
	Embed(dst Buffer, table Weight, ids []int32)
	// RMSNorm normalises each row of x, or each run of len(gain) values of it. dst may be x.
	RMSNorm(dst, x, gain Buffer, eps float32)
	// MatMul sets dst = x·wᵀ. [n, Rows] from [n, Cols]
	MatMul(dst, x Buffer, w Weight)
	// Bias adds b [1, cols] to every row of x.
	Bias(x, b Buffer)
	// QKV takes qkv [n, (Q+2·KV)·Dim], norms and turns the q and k heads, writes q [n, Q·Dim] and
	// stores k and v of every row in its lane's page. q may be nil when h.Q is 0.
	QKV(q, qkv Buffer, h Heads, kv KV, layer int, r Rows)
	// Attend sets dst to the attention of every row of q over keys 0..Pos of its lane,
	// grouped heads, scale 1/√Dim. All rows' keys are stored before any row reads.
	Attend(dst, q Buffer, kv KV, layer int, r Rows)
	// SwiGLU sets dst = silu(g)·u from gu [n, 2·F], g its first half of columns. [n, F]
	SwiGLU(dst, gu Buffer)
	// Add sets dst = a + b. dst may be a or b.
	Add(dst, a, b Buffer)
	// Gather sets dst[i] = src[rows[i]].
	Gather(dst, src Buffer, rows []int32)
	// Read copies the rows of src to dst when the pass commits.
	Read(dst []float32, src Buffer)
	// Commit runs what was recorded and waits. The Pass is spent.
	Commit(ctx context.Context) error
}

// ConvShape is the ring of short-convolution inputs: Ring positions, kept by absolute
// position modulo Ring, for every lane and layer. Ring must be at least the widest
// verify window plus the kernel length, so that a rollback needs no copy.
type ConvShape struct{ Layers, Lanes, Channels, Kernel, Ring int }

// Conv is a ring of convolution state on the device.
type Conv interface {
	Shape() ConvShape
	Bytes() int64
}

// ConvDevice is a Device that can run short convolutions (LFM2).
type ConvDevice interface {
	NewConv(ConvShape) (Conv, error)
}

// ConvPass is a Pass with LFM2's gated short convolution.
type ConvPass interface {
	// ShortConv takes bcx [n, 3·C] (B, C, x), forms u = B·x, convolves u over each lane's
	// positions with w [C, Kernel] (the last tap multiplies the row itself; u before position 0
	// is zero), adds bias [1, C] unless nil, multiplies by C and writes dst [n, C].
	// u of every row goes to the lane's ring.
	ShortConv(dst, bcx, w, bias Buffer, state Conv, layer int, r Rows)
}

// Router is how experts are chosen: sigmoid of the logits, the TopK largest of score + bias,
// unbiased scores as weights, renormalised by their sum + 1e-6 when Normalize is set, times Scale.
// With Softmax, which has no bias, the scores are the softmax over all experts, and renormalised by their plain sum.
type Router struct {
	TopK      int
	Softmax   bool
	Normalize bool
	Scale     float32
}

// Routes holds the chosen experts and their weights, rank by rank, for each row of a batch.
type Routes interface {
	Shape() (rows, topK int)
	Top(n int) Routes // a view of the first n rows
}

// MoEDevice is a Device that can run mixtures of experts.
type MoEDevice interface {
	NewRoutes(rows, topK int) (Routes, error)
}

// MoEPass is a Pass with routed experts. Slot s of a row's expert outputs is its rank.
type MoEPass interface {
	// Route fills r from logits [n, E]; bias [1, E], or nil as it must be with Softmax.
	Route(r Routes, logits, bias Buffer, cfg Router)
	// ExpertMatMul multiplies each (row, rank) by its expert's matrix. x is [n, Cols], shared by
	// a row's ranks, or [n·TopK, Cols]; dst is [n·TopK, Rows].
	ExpertMatMul(dst, x Buffer, w Weight, r Routes)
	// Combine sets dst[i] = Σ over rank of fma(weight, y[i·TopK+rank], acc), from 0, in rank order.
	Combine(dst, y Buffer, r Routes)
}

// TapPass is a Pass that can keep a copy of the residual stream for a drafter.
type TapPass interface {
	// Tap copies src [n, H] to columns H·slot.. of dst [n, H·taps].
	Tap(dst, src Buffer, slot int)
}

// TimedDevice is a Device that may know how long it worked itself, the time of the host left out.
type TimedDevice interface {
	// Busy is that time since the device was opened, 0 where it is not known.
	Busy() time.Duration
}
