package cpu

import (
	"encoding/binary"
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// panelRows is how many outputs lie side by side, so that a vector holds one k of each.
const panelRows = 16

// Weight is a matrix cut into panels of 16 outputs. A panel goes through its inputs in
// ascending order, so every kernel reads it from end to end:
//
//	bf16  [⌈Cols/2⌉][16] words, input 2i in the low half and 2i+1 in the high one
//	f16   [Cols][16]
//	f32   [Cols][16]
//
//	affine  see [group]
//
// Missing outputs of the last panel are zeros. Subnormal weights are stored as zeros.
type Weight struct {
	dev    *Device
	shape  backend.WeightShape
	panels int // of one expert
	stride int // bytes from panel to panel
	region region
}

// Shape implements [backend.Weight].
func (w *Weight) Shape() backend.WeightShape { return w.shape }

// Bytes implements [backend.Weight].
func (w *Weight) Bytes() int64 { return int64(len(w.region.bytes)) }

// NewWeight implements [backend.Device].
func (d *Device) NewWeight(s backend.WeightShape) (backend.Weight, error) {
	if err := s.Format.Check(); err != nil {
		return nil, fmt.Errorf("cpu: weight: %w", err)
	}
	if !s.Format.Fits(s.Cols) || s.ScaleKind >= quant.Affine {
		return nil, fmt.Errorf("cpu: %v weight of %d columns with scales of kind %d", s.Format, s.Cols, s.ScaleKind)
	}
	if _, err := product("weight", s.Experts, s.Rows, s.Cols, 4); err != nil {
		return nil, err
	}
	w := &Weight{dev: d, shape: s, panels: ceilDiv(s.Rows, panelRows), stride: panelBytes(s)}
	bytes, err := product("weight", s.Experts, w.panels, w.stride)
	if err != nil {
		return nil, err
	}
	w.region, err = d.reserve("weight", bytes)
	return w, err
}

// panelBytes is the size of a panel, rounded up to a cache line, and again kept off the
// multiples of 4 KiB, as a matmul goes through four panels side by side.
func panelBytes(s backend.WeightShape) int {
	cols, unit := s.Cols, 4*panelRows
	switch s.Format.Kind {
	case quant.BF16:
		cols = ceilDiv(cols, 2)
	case quant.F16:
		unit = 2 * panelRows
	case quant.Affine:
		cols, unit = cols/s.Format.Group, groupSize(s.Format, storedScales(s.ScaleKind))
	}
	bytes := ceilDiv(cols*unit, 64) * 64
	if bytes%4096 == 0 {
		bytes += 128
	}
	return bytes
}

// panel is the bytes of one panel.
func (w *Weight) panel(expert, i int) []byte {
	from := (expert*w.panels + i) * w.stride
	return w.region.bytes[from : from+w.stride]
}

// Fill implements [backend.Device].
func (d *Device) Fill(w backend.Weight, at backend.Slot, m quant.Matrix) error {
	own, ok := w.(*Weight)
	if !ok || own == nil || own.dev != d || d.closed {
		return fmt.Errorf("cpu: fill: the weight is not of this device, or the device is closed")
	}
	if err := m.Check(); err != nil {
		return fmt.Errorf("cpu: fill: %w", err)
	}
	s := own.shape
	if m.Format != s.Format || m.Cols != s.Cols {
		return fmt.Errorf("cpu: fill: %v matrix of %d columns into %v weight of %d", m.Format, m.Cols, s.Format, s.Cols)
	}
	if m.Format.Kind == quant.Affine && m.ScaleKind != s.ScaleKind {
		return fmt.Errorf("cpu: fill: scales of kind %d into a weight of kind %d", m.ScaleKind, s.ScaleKind)
	}
	if at.Expert < 0 || at.Expert >= s.Experts || at.Row < 0 || at.Row > s.Rows-m.Rows {
		return fmt.Errorf("cpu: fill: %d rows at expert %d, row %d, of %d experts with %d rows", m.Rows, at.Expert, at.Row, s.Experts, s.Rows)
	}
	d.ops.fill = fill{w: own, at: at, m: m}
	d.pool.run(&d.ops.fill, ceilDiv(at.Row+m.Rows, panelRows)-at.Row/panelRows)
	d.ops.fill = fill{}
	return nil
}

// fill is the task that lays a matrix out in panels, a panel a piece.
type fill struct {
	w  *Weight
	at backend.Slot
	m  quant.Matrix
}

func (f *fill) do(_ *worker, piece int) {
	i := f.at.Row/panelRows + piece
	first := i*panelRows - f.at.Row // the row of lane 0, in the matrix
	from, to := max(0, -first), min(panelRows, f.m.Rows-first)
	panel, rowBytes := f.w.panel(f.at.Expert, i), f.m.Format.RowBytes(f.m.Cols)
	rows := f.m.Data[(first+from)*rowBytes : (first+to)*rowBytes]
	switch f.m.Format.Kind {
	case quant.BF16:
		packBF16(panel[4*from:], rows, to-from, rowBytes)
	case quant.F16:
		packF16(panel[2*from:], rows, to-from, rowBytes)
	case quant.F32:
		packF32(panel[4*from:], rows, to-from, rowBytes)
	case quant.Affine:
		f.w.fillAffine(panel, from, f.m.Slice(first+from, first+to))
	}
}

// The pack functions spread n rows over as many lanes of a panel. They take a cache line of a
// row at a time: rows are often a multiple of 4 KiB apart, and word by word they would drive
// each other out of the first cache.
const packBytes = 64

// blocks calls pack for every such line of every row.
func blocks(rowBytes, n int, pack func(lane, from, to int)) {
	for from := 0; from < rowBytes; from += packBytes {
		for lane := range n {
			pack(lane, from, min(from+packBytes, rowBytes))
		}
	}
}

func packBF16(panel, rows []byte, n, rowBytes int) {
	blocks(rowBytes, n, func(lane, from, to int) {
		row := rows[lane*rowBytes:][:rowBytes]
		for k := from; k < to; k += 4 {
			pair := uint32(binary.LittleEndian.Uint16(row[k:]))
			if k+2 < to { // else the last of an odd number of inputs
				pair = binary.LittleEndian.Uint32(row[k:])
			}
			binary.LittleEndian.PutUint32(panel[k*panelRows+4*lane:], flushBF16Pair(pair))
		}
	})
}

// flushBF16Pair turns subnormals into zeros.
func flushBF16Pair(pair uint32) uint32 {
	if pair&0x7f80 == 0 {
		pair &= 0xffff8000
	}
	if pair&0x7f800000 == 0 {
		pair &= 0x8000ffff
	}
	return pair
}

func packF16(panel, rows []byte, n, rowBytes int) {
	blocks(rowBytes, n, func(lane, from, to int) {
		row := rows[lane*rowBytes:][:rowBytes]
		for k := from; k < to; k += 2 {
			binary.LittleEndian.PutUint16(panel[k*panelRows+2*lane:], binary.LittleEndian.Uint16(row[k:]))
		}
	})
}

func packF32(panel, rows []byte, n, rowBytes int) {
	blocks(rowBytes, n, func(lane, from, to int) {
		row := rows[lane*rowBytes:][:rowBytes]
		for k := from; k < to; k += 4 {
			bits := binary.LittleEndian.Uint32(row[k:])
			if bits&0x7f800000 == 0 {
				bits &= 0x80000000
			}
			binary.LittleEndian.PutUint32(panel[k*panelRows+4*lane:], bits)
		}
	})
}

// row widens one row of expert 0 into dst.
func (w *Weight) row(dst []float32, row int) {
	panel, lane := w.panel(0, row/panelRows), row%panelRows
	if w.shape.Format.Kind == quant.Affine {
		w.affineRow(dst, panel, lane)
		return
	}
	for k := range dst {
		dst[k] = widen(w.shape.Format.Kind, panel, k, lane)
	}
}

// widen is the weight of input k and a lane of a panel.
func widen(kind quant.Kind, panel []byte, k, lane int) float32 {
	switch kind {
	case quant.BF16:
		return backend.WidenBF16(binary.LittleEndian.Uint16(panel[(k/2*panelRows+lane)*4+k%2*2:]))
	case quant.F16:
		return backend.WidenF16(binary.LittleEndian.Uint16(panel[(k*panelRows+lane)*2:]))
	}
	return float32frombits(binary.LittleEndian.Uint32(panel[(k*panelRows+lane)*4:]))
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
