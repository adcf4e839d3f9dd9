package cpu

import (
	"fmt"

	"tfbatch/internal/backend"
)

// Conv is a ring of convolution inputs: [lane][layer][Ring][Channels], position p in slot p mod Ring.
type Conv struct {
	dev    *Device
	shape  backend.ConvShape
	data   []float32
	region region
}

// NewConv implements [backend.ConvDevice].
func (d *Device) NewConv(s backend.ConvShape) (backend.Conv, error) {
	bytes, err := product("conv", s.Layers, s.Lanes, s.Channels, s.Ring, 4)
	if err != nil {
		return nil, err
	}
	if s.Kernel <= 0 || s.Ring < s.Kernel {
		return nil, fmt.Errorf("cpu: conv: a kernel of %d taps in a ring of %d positions", s.Kernel, s.Ring)
	}
	r, err := d.reserve("conv", bytes)
	if err != nil {
		return nil, err
	}
	return &Conv{dev: d, shape: s, data: view[float32](r), region: r}, nil
}

// Shape implements [backend.Conv].
func (c *Conv) Shape() backend.ConvShape { return c.shape }

// Bytes implements [backend.Conv].
func (c *Conv) Bytes() int64 { return int64(len(c.region.bytes)) }

// slot is the input of a lane at a position.
func (c *Conv) slot(lane, layer, pos int) []float32 {
	s := &c.shape
	from := ((lane*s.Layers+layer)*s.Ring + pos%s.Ring) * s.Channels
	return c.data[from : from+s.Channels]
}

// ShortConv implements [backend.ConvPass].
func (p *Pass) ShortConv(dst, bcx, w, bias backend.Buffer, state backend.Conv, layer int, r backend.Rows) {
	p.enter("short conv")
	d, in, taps := p.buffer("dst", dst), p.buffer("bcx", bcx), p.buffer("w", w)
	ring := p.conv(state, layer)
	channels := ring.shape.Channels
	p.want("columns of dst", d.cols, channels)
	p.want("columns of bcx", in.cols, 3*channels)
	p.want("rows of bcx", in.rows, d.rows)
	p.want("channels of w", taps.rows, channels)
	p.want("taps of w", taps.cols, ring.shape.Kernel)
	p.apart(d, in, "bcx")
	var offset []float32
	if bias != nil {
		b := p.vector("bias", bias)
		p.want("columns of bias", b.cols, channels)
		offset = b.first()
	}
	p.checkRows(r, d.rows)
	p.checkLanes(r, ring.shape.Lanes)
	if p.err != nil {
		return
	}
	p.dev.ops.conv = shortConv{p.dev.kernels, d, in, taps, offset, ring, layer, r}
	p.run(&p.dev.ops.conv, ceilDiv(channels, convPiece))
}

func (p *Pass) conv(v backend.Conv, layer int) *Conv {
	own, ok := v.(*Conv)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("state is not a ring of this device")
		return &Conv{}
	}
	if layer < 0 || layer >= own.shape.Layers {
		p.fail("layer %d of %d", layer, own.shape.Layers)
	}
	return own
}

func (p *Pass) checkLanes(r backend.Rows, lanes int) {
	if p.err == nil {
		p.within("lane", r.Lane, lanes)
	}
}

// convPiece is the number of channels of a piece: pieces share nothing but the row tables.
const convPiece = 256

type shortConv struct {
	kernels  *kernels
	dst, bcx *Buffer
	taps     *Buffer // [Channels, Kernel]
	bias     []float32
	ring     *Conv
	layer    int
	r        backend.Rows
}

// do runs some channels of all rows, a lane's run of rows at a time.
func (o *shortConv) do(w *worker, piece int) {
	from := piece * convPiece
	to := min(from+convPiece, o.dst.cols)
	n, kernel := to-from, o.ring.shape.Kernel
	// Scratch: the taps, turned so that a tap's channels are neighbours, and then one input.
	w.row = grown(w.row, (kernel+1)*convPiece)
	for c := range n {
		for j := range kernel {
			w.row[j*convPiece+c] = o.taps.row(from + c)[j]
		}
	}
	for first := 0; first < o.dst.rows; {
		last := first + 1
		for last < o.dst.rows && o.r.Lane[last] == o.r.Lane[first] {
			last++
		}
		o.run(w, first, last, from, to)
		first = last
	}
}

// run convolves rows first..last-1, all of one lane, and then stores their inputs: an earlier
// store could overwrite what a row of the same run still reads.
func (o *shortConv) run(w *worker, first, last, from, to int) {
	kernel, channels, n := o.ring.shape.Kernel, o.dst.cols, to-from
	lane := int(o.r.Lane[first])
	u := w.row[kernel*convPiece:][:n]
	for row := first; row < last; row++ {
		y := o.dst.row(row)[from:to]
		clear(y)
		for j := range kernel {
			back := kernel - 1 - j
			o.input(u, row, first, int(o.r.Pos[row])-back, back, from)
			o.kernels.tap(y, w.row[j*convPiece:][:n], u)
		}
		if o.bias != nil {
			o.kernels.add(y, y, o.bias[from:to])
		}
		o.kernels.mul(y, y, o.bcx.row(row)[channels+from:])
	}
	for row := first; row < last; row++ {
		in := o.bcx.row(row)
		o.kernels.mul(o.ring.slot(lane, o.layer, int(o.r.Pos[row]))[from:to], in[from:to], in[2*channels+from:])
	}
}

// input sets u to the convolution input at position pos, which is back rows before row.
func (o *shortConv) input(u []float32, row, first, pos, back, from int) {
	channels := o.dst.cols
	switch {
	case pos < 0:
		clear(u)
	case row-back >= first:
		in := o.bcx.row(row - back)
		o.kernels.mul(u, in[from:from+len(u)], in[2*channels+from:])
	default:
		copy(u, o.ring.slot(int(o.r.Lane[row]), o.layer, pos)[from:])
	}
}
