package cpu

import (
	"math"
	"runtime"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// layout is how a kernel wants the codes of a unit of inputs, in words of 32 bits. Behind them come the
// step of the unit, and step times the sum of the codes, as floats.
type layout uint8

const (
	byFours  layout = iota // four codes in a word, in order
	byParity               // of eight, those at 0, 2, 4, 6 and then the others: as the nibbles of a word of weights come
	byPairs                // of four, 0 and 2 and then 1 and 3, in 16 bits each
	centred                // byFours, after a word of 128 times the sum: what weights lack that are read as signed
)

// words is how many words the codes of a unit take.
func (l layout) words(unit int) int {
	if l == byPairs {
		return unit / 2
	}
	return unit / 4
}

// size is the words of a unit with all that belongs to it.
func (l layout) size(unit int) int {
	const factors = 2
	if l == centred {
		return 1 + l.words(unit) + factors
	}
	return l.words(unit) + factors
}

// kernelsOf finds the kernels for w, and says whether they are those of i8-v1.
func (d *Device) kernelsOf(w *Weight) (*tiles, bool) {
	f := w.shape.Format
	if d.int8 && f.Kind == quant.Affine {
		return &d.kernels.dot[f.Bits], true
	}
	return d.kernels.of(f), false
}

// inputs is x as the kernels for w take it. It is good until the next product.
func (p *Pass) inputs(x *Buffer, w *Weight) *Buffer {
	kernels, int8 := p.dev.kernelsOf(w)
	if !int8 {
		return p.summed(x, w)
	}
	r := &p.dev.ops.rounded
	r.set(p.dev.kernels, x, w.shape.Format.Group, kernels.layout)
	p.preparing(r, x.rows*r.pieces)
	return &r.rows
}

// rounded are the inputs of a product of i8-v1: the units of a row as their layout says.
type rounded struct {
	kernels *kernels
	x       *Buffer
	unit    int
	layout  layout
	pieces  int    // of a row
	rows    Buffer // scratch, kept from product to product
}

// roundedPiece is the number of inputs of a piece: some µs of work.
const roundedPiece = 4096

// set makes room for the units of the rows of x.
func (r *rounded) set(k *kernels, x *Buffer, unit int, l layout) {
	cols := x.cols / unit * l.size(unit)
	stride := rowStride(cols)
	r.kernels, r.x, r.unit, r.layout, r.pieces = k, x, unit, l, ceilDiv(x.cols, roundedPiece)
	r.rows = Buffer{dev: x.dev, data: grown(r.rows.data[:cap(r.rows.data)], x.rows*stride), rows: x.rows, cols: cols, stride: stride}
}

func (r *rounded) do(w *worker, piece int) {
	row, from := piece/r.pieces, piece%r.pieces*roundedPiece
	in, size := r.x.row(row), r.layout.size(r.unit)
	in = in[from:min(from+roundedPiece, len(in))]
	data := r.rows.row(row)[from/r.unit*size:]
	out := unsafe.Slice((*uint32)(unsafe.Pointer(&data[0])), len(data))
	codes := w.codes[:r.unit]
	for ; len(in) > 0; in, out = in[r.unit:], out[size:] {
		d, sum := r.kernels.roundUnit(codes, in[:r.unit])
		r.layout.put(out[:size], codes, d, sum)
	}
}

// roundUnit is backend.RoundUnit by the kernels.
func (k *kernels) roundUnit(codes []int32, x []float32) (d float32, sum int32) {
	d, r := backend.Steps(k.magnitude(x))
	if r == 0 {
		clear(codes)
		return d, 0
	}
	k.codes(codes, x, r)
	for _, c := range codes {
		sum += c
	}
	return d, sum
}

// put lays a unit out.
func (l layout) put(out []uint32, codes []int32, d float32, sum int32) {
	if l == centred {
		out[0] = uint32(128 * sum)
		out = out[1:]
	}
	switch words := out[:l.words(len(codes))]; l {
	case byParity:
		for i := 0; i+1 < len(words); i += 2 {
			c := (*[8]int32)(codes[4*i:])
			words[i], words[i+1] = word(c[0], c[2], c[4], c[6]), word(c[1], c[3], c[5], c[7])
		}
	case byPairs:
		for i := 0; i+1 < len(words); i += 2 {
			c := (*[4]int32)(codes[2*i:])
			words[i], words[i+1] = uint32(uint16(c[0]))|uint32(c[2])<<16, uint32(uint16(c[1]))|uint32(c[3])<<16
		}
	default:
		for i := range words {
			c := (*[4]int32)(codes[4*i:])
			words[i] = word(c[0], c[1], c[2], c[3])
		}
	}
	factors := out[len(out)-2:]
	factors[0], factors[1] = math.Float32bits(d), math.Float32bits(d*float32(sum))
}

// word packs four codes, the first in the lowest bits.
func word(a, b, c, d int32) uint32 {
	return uint32(uint8(a)) | uint32(uint8(b))<<8 | uint32(uint8(c))<<16 | uint32(d)<<24
}

// dotTilePortable is the plain kernel of i8-v1, of any bits. Its inputs lie by fours.
func dotTilePortable(t *tile) {
	size := byFours.size(t.format.Group)
	var inputs [maxRows]dotInputs
	for p := range t.panels {
		panel := unsafe.Slice((*byte)(unsafe.Add(t.weights, p*t.stride)), t.stride)
		var sums [maxRows][panelRows]float32
		for u := range t.cols / t.format.Group {
			for r := range t.rows {
				inputs[r].read(unsafe.Slice((*uint32)(unsafe.Pointer(t.x[r])), (u+1)*size)[u*size:])
			}
			groupOf(panel, t.format, scaleKind(t.scaleBytes), u).dot(&sums, inputs[:t.rows])
		}
		for r := range t.rows {
			dst := unsafe.Slice(t.dst[r], (p+1)*panelRows)[p*panelRows:]
			for lane := range dst {
				dst[lane] = backend.Flush(sums[r][lane])
			}
		}
	}
}

// dotInputs are a unit of inputs of one row.
type dotInputs struct {
	codes       [maxGroupInputs]int32
	step, total float32
}

func (d *dotInputs) read(in []uint32) {
	factors := in[len(in)-2:]
	for i, w := range in[:len(in)-2] {
		for j := range 4 {
			d.codes[4*i+j] = int32(int8(w >> (8 * j)))
		}
	}
	d.step, d.total = float32frombits(factors[0]), float32frombits(factors[1])
}

// dot adds a group's share of 16 outputs to the sums of some rows.
func (g group) dot(sums *[maxRows][panelRows]float32, inputs []dotInputs) {
	var codes [maxGroupInputs]uint8
	for lane := range panelRows {
		scale, bias := g.scaleAndBias(lane)
		weights := g.codes(&codes, lane)
		for r := range inputs {
			in := &inputs[r]
			sum := int32(0)
			for k, q := range weights {
				sum += int32(q) * in.codes[k]
			}
			acc := &sums[r][lane]
			*acc = backend.FMA(scale, float32(float32(sum)*in.step), *acc)
			*acc = backend.FMA(bias, in.total, *acc)
		}
	}
}

func codesPortable(dst []int32, x []float32, r float32) {
	for i, v := range x {
		dst[i] = int32(math.RoundToEven(float64(float32(v * r))))
	}
}

func dotPeakPortable(turns int) (macs int) {
	const size = 16
	weights, codes, sum := [size]uint8{1, 2, 3, 4}, [size]int32{5, 6, 7, 8}, int32(0)
	for range turns {
		for k, q := range weights {
			sum += int32(q) * codes[k]
		}
	}
	runtime.KeepAlive(sum)
	return size
}
