package cpu

import (
	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// MatMul implements [backend.Pass].
func (p *Pass) MatMul(dst, x backend.Buffer, w backend.Weight) {
	p.enter("matmul")
	d, in, wt := p.buffer("dst", dst), p.buffer("x", x), p.weight(w)
	p.want("rows of x", in.rows, d.rows)
	p.want("columns of x", in.cols, wt.shape.Cols)
	p.want("columns of dst", d.cols, wt.shape.Rows)
	p.want("experts of w", wt.shape.Experts, 1)
	p.apart(d, in, "x")
	if p.err != nil {
		return
	}
	p.labelled(wt)
	m := &p.dev.ops.matmul
	m.set(p.dev, wt, d, p.inputs(in, wt))
	m.entries, m.share = nil, 1
	block := max(maxRows, blockBytes/(4*in.cols)/maxRows*maxRows)
	for from := 0; from < d.rows; from += block {
		m.segments = append(m.segments, segment{from: from, to: min(from+block, d.rows)})
	}
	p.run(m, len(m.segments)*m.groups)
}

const (
	blockBytes = 1 << 20   // inputs that are used again and again while the weights stream by
	groupBytes = 128 << 10 // weights of a piece: long enough a stream, short enough to share out
	cacheBytes = 512 << 10 // weights that stay near a core while row after row uses them
)

// matmul is dst = x·wᵀ for runs of rows, each with an expert of w. A piece is a segment
// times a group of panels.
type matmul struct {
	kernels  *tiles
	int8     bool // the product is one of i8-v1
	w        *Weight
	dst, x   *Buffer
	segments []segment
	entries  []int32 // the dst row of every entry of a segment; nil: the entry itself
	share    int     // dst rows that use the same x row
	groups   int     // of every segment
	width    int     // panels in a group
	stride   int     // bytes from panel to panel as the kernels see them
	starts   []int32 // scratch of byExpert
	pairs    []int32 // what entries then points to
}

// segment is a run of entries that use the same expert.
type segment struct{ expert, from, to int }

func (m *matmul) set(d *Device, w *Weight, dst, x *Buffer) {
	m.kernels, m.int8 = d.kernelsOf(w)
	m.w, m.dst, m.x = w, dst, x
	m.segments = m.segments[:0]
	m.stride = w.stride
	if m.kernels.unpack != nil {
		m.stride = panelBytes(unpackedShape(w.shape))
	}
	m.width = groupWidth(w.panels, m.stride, len(d.pool.workers), dst.rows > m.kernels.rows)
	m.groups = ceilDiv(w.panels, m.width)
}

// groupWidth is the number of panels in a piece.
func groupWidth(panels, stride, threads int, reused bool) int {
	if reused && maxPanels*stride > cacheBytes {
		return maxPanels / 2
	}
	const piecesPerThread = 4 // so that one slow thread is not waited for
	width := min(groupBytes/stride, panels/(piecesPerThread*threads))
	return max(width/maxPanels, 1) * maxPanels
}

func (m *matmul) do(w *worker, piece int) {
	s := m.segments[piece/m.groups]
	first := piece % m.groups * m.width
	last := min(first+m.width, m.w.panels)
	m.unpack(w, s.expert, first, last)
	rows := s.to - s.from
	tiles := ceilDiv(rows, m.kernels.rows)
	for i := range tiles { // rows in tiles of nearly equal height
		from, to := s.from+i*rows/tiles, s.from+(i+1)*rows/tiles
		m.rows(w, s.expert, from, to, first, last)
	}
}

// rows multiplies the entries from..to-1 with panels first..last-1.
func (m *matmul) rows(w *worker, expert, from, to, first, last int) {
	n := to - from
	t := &w.tile
	t.format, t.scaleBytes = m.w.shape.Format, scaleSize(storedScales(m.w.shape.ScaleKind))
	t.rows, t.cols, t.width, t.stride = n, m.w.shape.Cols, m.x.cols, m.stride
	t.unit, t.chains = unitOf(t.format), chains(t.cols, unitOf(t.format))
	if m.int8 {
		t.unit, t.chains = m.kernels.layout.words(t.unit), 1
	}
	for r := range n {
		t.x[r] = &m.x.row(m.entry(from+r) / m.share)[0]
	}
	for p := first; p < last; {
		t.panels = 1
		kernel := m.kernels.narrow[n]
		if wide := m.kernels.wide[n]; wide != nil && p+m.kernels.panels[n] <= last {
			t.panels, kernel = m.kernels.panels[n], wide
		}
		t.weights = m.panel(w, expert, p, first)
		m.call(w, kernel, from, n, p)
		p += t.panels
	}
}

// call runs a kernel on panel p and those after it, by way of scratch where the last one is cut.
func (m *matmul) call(w *worker, kernel func(*tile), from, n, p int) {
	t := &w.tile
	width := t.panels * panelRows
	column := p * panelRows
	fits := column+width <= m.dst.cols
	for r := range n {
		if fits {
			t.dst[r] = &m.dst.row(m.entry(from + r))[column]
		} else {
			t.dst[r] = &w.spill[r*width]
		}
	}
	kernel(t)
	if fits {
		return
	}
	for r := range n {
		copy(m.dst.row(m.entry(from + r))[column:], w.spill[r*width:(r+1)*width])
	}
}

func (m *matmul) entry(i int) int {
	if m.entries == nil {
		return i
	}
	return int(m.entries[i])
}

// unitOf is G of ARITHMETIC.md.
func unitOf(f quant.Format) int {
	if f.Kind == quant.Affine {
		return f.Group
	}
	return unit
}

// chains is S for k inputs in units of so many.
func chains(k, unit int) int {
	units := ceilDiv(k, unit)
	for s := maxChains; s > 1; s /= 2 {
		if units >= s {
			return s
		}
	}
	return 1
}
