package gpu

import (
	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
)

// Weight is a packed weight on the device.
type Weight struct {
	dev   *Device
	shape backend.WeightShape
	w     kernels.Weight
}

// Shape implements [backend.Weight].
func (w *Weight) Shape() backend.WeightShape { return w.shape }

// Bytes implements [backend.Weight].
func (w *Weight) Bytes() int64 { return w.w.Codes.Len + w.w.Scales.Len }

// Buffer is a row-major f32 matrix on the device. None of its values is subnormal.
type Buffer struct {
	dev        *Device
	mem        kernels.Mem
	rows, cols int
}

// Shape implements [backend.Buffer].
func (b *Buffer) Shape() (rows, cols int) { return b.rows, b.cols }

// Top implements [backend.Buffer]. A view of more rows than there are fails where it is used.
func (b *Buffer) Top(n int) backend.Buffer {
	v := *b
	v.rows = n
	return &v
}

func (b *Buffer) span() kernels.Span {
	return kernels.Span{Mem: b.mem, Len: 4 * int64(b.rows) * int64(b.cols)}
}

// KV is a pool of pages; each layer's keys are together, and so are its values.
type KV struct {
	dev          *Device
	shape        backend.KVShape
	keys, values kernels.Mem
}

// Shape implements [backend.KV].
func (kv *KV) Shape() backend.KVShape { return kv.shape }

// Bytes implements [backend.KV].
func (kv *KV) Bytes() int64 { return kv.keys.Bytes() + kv.values.Bytes() }

// cache is one layer of the pool.
func (kv *KV) cache(layer int) kernels.Cache {
	c := kernels.Cache{Heads: kv.shape.Heads, Dim: kv.shape.Dim, F32: kv.shape.F32}
	size := int64(kv.shape.Pages) * c.PageBytes()
	c.Keys = kernels.Span{Mem: kv.keys, Off: int64(layer) * size, Len: size}
	c.Values = kernels.Span{Mem: kv.values, Off: int64(layer) * size, Len: size}
	return c
}

// Conv is a ring of convolution inputs, [layer][lane][Ring][Channels].
type Conv struct {
	dev   *Device
	shape backend.ConvShape
	mem   kernels.Mem
}

// Shape implements [backend.Conv].
func (c *Conv) Shape() backend.ConvShape { return c.shape }

// Bytes implements [backend.Conv].
func (c *Conv) Bytes() int64 { return c.mem.Bytes() }

func (c *Conv) ring(layer int) kernels.Ring {
	size := 4 * int64(c.shape.Lanes) * int64(c.shape.Ring) * int64(c.shape.Channels)
	return kernels.Ring{
		State: kernels.Span{Mem: c.mem, Off: int64(layer) * size, Len: size},
		Len:   c.shape.Ring, Channels: c.shape.Channels,
	}
}

// Routes are the chosen experts of every row and their weights, and the pairs by expert.
type Routes struct {
	dev                         *Device
	rows, topK                  int
	all                         int // rows that there is room for
	ids, weights, order, blocks kernels.Mem
	known                       *int // experts were chosen among so many; shared by the views
}

// Shape implements [backend.Routes].
func (r *Routes) Shape() (rows, topK int) { return r.rows, r.topK }

// Top implements [backend.Routes]. A view of more rows than there are fails where it is used.
func (r *Routes) Top(n int) backend.Routes {
	v := *r
	v.rows = n
	return &v
}

func (r *Routes) pairs() int { return r.rows * r.topK }

func (r *Routes) span(m kernels.Mem) kernels.Span {
	return kernels.Span{Mem: m, Len: 4 * int64(r.pairs())}
}

func (r *Routes) groups(experts int) kernels.Groups {
	blocks := kernels.Span{Mem: r.blocks, Len: 12 * int64(kernels.MaxBlocks(r.pairs(), experts))}
	return kernels.Groups{IDs: r.span(r.ids), Order: r.span(r.order), Blocks: blocks, Pairs: r.pairs()}
}
