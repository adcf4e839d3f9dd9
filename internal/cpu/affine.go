package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// A panel of an affine weight is a run of groups, each of them whole cache lines:
//
//	codes   [Group·Bits/32][16] words, as the checkpoint packs them: the first code in the lowest bits
//	scales  [16], bf16 where the checkpoint has them so, else f32
//	biases  [16], like the scales
//
// group is a view of one of them.
type group struct {
	format quant.Format
	scales quant.Kind // as stored: BF16 or F32
	bytes  []byte
}

// storedScales is the kind in which a panel keeps scales of a kind. Every f16 is an f32 too.
func storedScales(kind quant.Kind) quant.Kind {
	if kind == quant.BF16 {
		return quant.BF16
	}
	return quant.F32
}

// scaleKind is the kind of stored scales of so many bytes.
func scaleKind(bytes int) quant.Kind {
	if bytes == scaleSize(quant.BF16) {
		return quant.BF16
	}
	return quant.F32
}

func scaleSize(kind quant.Kind) int { return quant.Format{Kind: kind}.RowBytes(1) }

// groupWords is the number of code words of one output.
func groupWords(f quant.Format) int { return f.Group * f.Bits / 32 }

// groupSize is the bytes of a group; scales is their kind as stored.
func groupSize(f quant.Format, scales quant.Kind) int {
	return panelRows * (4*groupWords(f) + 2*scaleSize(scales))
}

// groupOf is group u of a panel.
func groupOf(panel []byte, f quant.Format, scales quant.Kind, u int) group {
	size := groupSize(f, scales)
	return group{f, scales, panel[u*size : (u+1)*size]}
}

// word is word i of an output's codes.
func (g group) word(i, lane int) []byte { return g.bytes[4*(i*panelRows+lane):][:4] }

// parts are where the scale and the bias of an output lie.
func (g group) parts(lane int) (scale, bias []byte) {
	size := scaleSize(g.scales)
	scales := g.bytes[4*panelRows*groupWords(g.format):]
	return scales[lane*size:][:size], scales[(panelRows+lane)*size:][:size]
}

// maxGroupInputs is the largest group that there is.
const maxGroupInputs = 128

// codes reads those of an output.
func (g group) codes(dst *[maxGroupInputs]uint8, lane int) []uint8 {
	var packed [maxGroupInputs]byte // of 8 bits
	words := groupWords(g.format)
	for i := range words {
		copy(packed[4*i:], g.word(i, lane))
	}
	codes := dst[:g.format.Group]
	quant.Unpack(codes, packed[:4*words], g.format.Bits)
	return codes
}

func (g group) scaleAndBias(lane int) (scale, bias float32) {
	s, b := g.parts(lane)
	return g.scales.Float(s), g.scales.Float(b)
}

// fillAffine lays the rows of m out in a panel, from lane on.
func (w *Weight) fillAffine(panel []byte, lane int, m quant.Matrix) {
	f, stored := m.Format, storedScales(m.ScaleKind)
	groups, size := m.Cols/f.Group, scaleSize(m.ScaleKind)
	codeBytes := f.RowBytes(f.Group)
	for u := range groups {
		g := groupOf(panel, f, stored, u)
		for r := range m.Rows {
			at := r*groups + u
			codes := m.Data[at*codeBytes:][:codeBytes]
			for i := range groupWords(f) {
				copy(g.word(i, lane+r), codes[4*i:])
			}
			scale, bias := g.parts(lane + r)
			putScale(scale, stored, m.ScaleKind.Float(m.Scales[at*size:]))
			putScale(bias, stored, m.ScaleKind.Float(m.Biases[at*size:]))
		}
	}
}

// putScale stores a scale or a bias, which counts as zero where it is subnormal.
func putScale(to []byte, kind quant.Kind, x float32) {
	if kind == quant.BF16 {
		binary.LittleEndian.PutUint16(to, backend.RoundBF16(backend.Flush(x))) // exact
		return
	}
	binary.LittleEndian.PutUint32(to, math.Float32bits(backend.Flush(x)))
}

// affineRow widens one row of expert 0 into dst.
func (w *Weight) affineRow(dst []float32, panel []byte, lane int) {
	f, stored := w.shape.Format, storedScales(w.shape.ScaleKind)
	var codes [maxGroupInputs]uint8
	for u := range len(dst) / f.Group {
		g := groupOf(panel, f, stored, u)
		scale, bias := g.scaleAndBias(lane)
		for i, q := range g.codes(&codes, lane) {
			dst[u*f.Group+i] = backend.Flush(backend.FMA(scale, float32(q), bias))
		}
	}
}

// summed are the inputs of a product with an affine weight: after each group of a row comes the sum of
// it. So a kernel meets the sum where it needs it, and every output shares it.
type summed struct {
	x    *Buffer
	unit int
	rows Buffer // scratch, kept from product to product
}

// summed is x, with the sums of its groups where w is affine. It is good until the next product.
func (p *Pass) summed(x *Buffer, w *Weight) *Buffer {
	if w.shape.Format.Kind != quant.Affine {
		return x
	}
	s := &p.dev.ops.summed
	s.set(x, w.shape.Format.Group)
	p.preparing(s, x.rows)
	return &s.rows
}

// set makes room for the rows of x and their sums.
func (s *summed) set(x *Buffer, unit int) {
	cols := x.cols + x.cols/unit
	stride := rowStride(cols)
	s.x, s.unit = x, unit
	s.rows = Buffer{dev: x.dev, data: grown(s.rows.data[:cap(s.rows.data)], x.rows*stride), rows: x.rows, cols: cols, stride: stride}
}

func (s *summed) do(_ *worker, row int) {
	in, out := s.x.row(row), s.rows.row(row)
	for ; len(in) > 0; in, out = in[s.unit:], out[s.unit+1:] {
		copy(out, in[:s.unit])
		out[s.unit] = sumOf(in[:s.unit])
	}
}

func sumOf(x []float32) (sum float32) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// unpackedShape is that of a weight in codes of 8 bits.
func unpackedShape(s backend.WeightShape) backend.WeightShape {
	s.Format.Bits = 8
	return s
}

// unpack prepares panels first..last-1 for kernels that take codes of 8 bits.
func (m *matmul) unpack(w *worker, expert, first, last int) {
	if m.kernels.unpack == nil {
		return
	}
	w.unpacked = grown(w.unpacked, (last-first)*m.stride/4)
	s := m.w.shape
	scales := storedScales(s.ScaleKind)
	from, to := groupSize(s.Format, scales), groupSize(unpackedShape(s).Format, scales)
	factors := 2 * panelRows * scaleSize(scales)
	for p := first; p < last; p++ {
		src := m.w.panel(expert, p)
		dst := unsafe.Slice((*byte)(m.panel(w, expert, p, first)), m.stride)
		for range s.Cols / s.Format.Group {
			m.kernels.unpack(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), s.Format.Group/32)
			copy(dst[to-factors:to], src[from-factors:])
			src, dst = src[from:], dst[to:]
		}
	}
}

// panel is where a kernel finds a panel: in the weight, or among the unpacked ones, which start with first.
func (m *matmul) panel(w *worker, expert, p, first int) unsafe.Pointer {
	if m.kernels.unpack == nil {
		return unsafe.Pointer(&m.w.panel(expert, p)[0])
	}
	return unsafe.Pointer(&w.unpacked[(p-first)*m.stride/4])
}

// affineTilePortable is the plain kernel of an affine weight of any bits.
func affineTilePortable(t *tile) {
	var sums [maxRows][maxChains][panelRows]float32
	var w [maxGroupInputs][panelRows]float32
	for p := range t.panels {
		panel := unsafe.Slice((*byte)(unsafe.Add(t.weights, p*t.stride)), t.stride)
		clear(sums[:])
		for u := range t.cols / t.unit {
			g := groupOf(panel, t.format, scaleKind(t.scaleBytes), u)
			g.widen(&w)
			for r := range t.rows {
				x := unsafe.Slice(t.x[r], (u+1)*(t.unit+1))[u*(t.unit+1):]
				g.accumulate(&sums[r][u%t.chains], &w, x)
			}
		}
		for r := range t.rows {
			fold(unsafe.Slice(t.dst[r], (p+1)*panelRows)[p*panelRows:], &sums[r], t.chains)
		}
	}
}

// widen turns the codes of all outputs into floats, by input.
func (g group) widen(w *[maxGroupInputs][panelRows]float32) {
	var codes [maxGroupInputs]uint8
	for lane := range panelRows {
		for k, q := range g.codes(&codes, lane) {
			w[k][lane] = float32(q)
		}
	}
}

// accumulate adds a group's share of 16 outputs to their sums; x are its inputs and their sum.
func (g group) accumulate(sums *[panelRows]float32, w *[maxGroupInputs][panelRows]float32, x []float32) {
	var a [panelRows]float32
	for k, x := range x[:g.format.Group] {
		for lane := range a {
			a[lane] = backend.FMA(w[k][lane], x, a[lane])
		}
	}
	for lane := range sums {
		scale, bias := g.scaleAndBias(lane)
		sums[lane] = backend.FMA(scale, a[lane], sums[lane])
		sums[lane] = backend.FMA(bias, x[g.format.Group], sums[lane])
	}
}
