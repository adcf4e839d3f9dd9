package kernels

import (
	"encoding/binary"
	"fmt"

	"tfbatch/quant"
)

// Sizes of the weight layout; weight.h describes it.
const (
	tileRows  = 32 // outputs of a tile
	runInputs = 32 // inputs of a run
	denseUnit = 64 // inputs of a unit of a dense weight
	maxChains = 8
)

// Layout is how matrices [Rows, Cols] of one format lie in memory: codes as
// [expert][tile][unit][run][vector][lane], scales and biases as [expert][tile][unit][lane].
type Layout struct {
	Format              quant.Format
	Experts, Rows, Cols int
}

// Check reports whether the kernels can read the layout.
func (l Layout) Check() error {
	if l.Experts <= 0 || l.Rows <= 0 || l.Cols <= 0 {
		return fmt.Errorf("weight of %d experts, %d rows and %d columns", l.Experts, l.Rows, l.Cols)
	}
	if _, err := kernelsFor(l.Format); err != nil {
		return err
	}
	if l.Format.Kind != quant.Affine {
		return nil
	}
	if g := l.Format.Group; g != 32 && g != 64 && g != 128 {
		return fmt.Errorf("%v weight: groups of %d, want 32, 64 or 128", l.Format, g)
	}
	if l.Cols%l.Format.Group != 0 {
		return fmt.Errorf("%v weight of %d columns, want a multiple of the group", l.Format, l.Cols)
	}
	return nil
}

func (l Layout) unit() int {
	if l.Format.Kind == quant.Affine {
		return l.Format.Group
	}
	return denseUnit
}

func (l Layout) units() int { return ceilDiv(l.Cols, l.unit()) }
func (l Layout) runs() int  { return l.unit() / runInputs }
func (l Layout) tiles() int { return ceilDiv(l.Rows, tileRows) }

// runWords is the 32-bit words of a run of one output.
func (l Layout) runWords() int { return l.Format.RowBytes(runInputs) / 4 }

// vectorWords is the words that a lane reads at once, as vector_words in weight.h.
func (l Layout) vectorWords() int {
	switch n := l.runWords(); {
	case n%4 == 0:
		return 4
	case n%2 == 0:
		return 2
	}
	return 1
}

// chains is S of the arithmetic.
func (l Layout) chains() int {
	for s := maxChains; s > 1; s /= 2 {
		if l.units() >= s {
			return s
		}
	}
	return 1
}

// tileCodeBytes is the size of the codes of one tile.
func (l Layout) tileCodeBytes() int { return l.units() * l.runs() * l.runWords() * 4 * tileRows }

// CodeBytes is the size of all codes.
func (l Layout) CodeBytes() int64 {
	return int64(l.Experts) * int64(l.tiles()) * int64(l.tileCodeBytes())
}

// ScaleBytes is the size of all scales and biases of the given kind; 0 for a dense weight.
func (l Layout) ScaleBytes(kind quant.Kind) int64 {
	return int64(l.Experts) * int64(l.tiles()) * int64(l.tileScaleBytes(kind))
}

func (l Layout) tileScaleBytes(kind quant.Kind) int {
	if l.Format.Kind != quant.Affine {
		return 0
	}
	return l.units() * tileRows * 2 * quant.Format{Kind: kind}.RowBytes(1)
}

// Patch is a run of tiles that a matrix touches, to be read (where Partial), changed and
// written back.
type Patch struct {
	Codes, CodesLen   int64 // of the weight's codes
	Scales, ScalesLen int64
	Partial           bool // other rows of the weight lie in the tiles too

	layout Layout
	m      quant.Matrix
	row    int // of the weight's expert, of m's first row
	tile   int // first
	tiles  int
}

// patchBytes bounds the host memory of a patch.
const patchBytes = 32 << 20

// Patches cuts matrix m at row of expert into patches of bounded size.
func (l Layout) Patches(expert, row int, m quant.Matrix) []Patch {
	first, last := row/tileRows, ceilDiv(row+m.Rows, tileRows)
	step := max(1, patchBytes/l.tileCodeBytes())
	var out []Patch
	for t := first; t < last; t += step {
		p := Patch{layout: l, m: m, row: row, tile: t, tiles: min(step, last-t)}
		at := int64(expert*l.tiles() + t)
		p.Codes, p.CodesLen = at*int64(l.tileCodeBytes()), int64(p.tiles*l.tileCodeBytes())
		scales := l.tileScaleBytes(m.ScaleKind)
		p.Scales, p.ScalesLen = at*int64(scales), int64(p.tiles*scales)
		p.Partial = t*tileRows < row || (t+p.tiles)*tileRows > row+m.Rows
		out = append(out, p)
	}
	return out
}

// Tiles is the number of tiles of the patch, which can be packed apart.
func (p Patch) Tiles() int { return p.tiles }

// Pack writes the rows of the matrix that lie in tile i of the patch into codes and scales,
// which hold the whole patch.
func (p Patch) Pack(codes, scales []byte, i int) {
	l := p.layout
	codes = codes[i*l.tileCodeBytes():][:l.tileCodeBytes()]
	size := l.tileScaleBytes(p.m.ScaleKind)
	scales = scales[i*size:][:size]
	for lane := range tileRows {
		row := (p.tile+i)*tileRows + lane - p.row
		if row < 0 || row >= p.m.Rows {
			continue
		}
		width := p.m.Format.RowBytes(p.m.Cols)
		l.packRow(codes, p.m.Data[row*width:][:width], lane)
		if size > 0 {
			l.packScales(scales, p.m, row, lane)
		}
	}
}

// packRow deals the words of a row to its lane of a tile.
func (l Layout) packRow(tile, row []byte, lane int) {
	vector := l.vectorWords() * 4
	for at, word := 0, 0; at < len(row); word++ {
		to := tile[(word*tileRows+lane)*vector:][:vector]
		at += copy(to, row[at:])
		clearSubnormals(l.Format.Kind, to)
	}
}

// clearSubnormals makes subnormal weights zeros of their sign, as the arithmetic counts them.
func clearSubnormals(kind quant.Kind, b []byte) {
	switch kind {
	case quant.BF16:
		for i := 0; i < len(b); i += 2 {
			if b[i+1]&0x7f == 0 && b[i]&0x80 == 0 {
				b[i], b[i+1] = 0, b[i+1]&0x80
			}
		}
	case quant.F32:
		for i := 0; i < len(b); i += 4 {
			if bits := binary.LittleEndian.Uint32(b[i:]); bits&0x7f800000 == 0 {
				binary.LittleEndian.PutUint32(b[i:], bits&0x80000000)
			}
		}
	}
}

func (l Layout) packScales(tile []byte, m quant.Matrix, row, lane int) {
	size := quant.Format{Kind: m.ScaleKind}.RowBytes(1)
	from := row * l.units() * size
	for u := range l.units() {
		to := tile[(u*tileRows+lane)*2*size:][:2*size]
		copy(to, m.Scales[from+u*size:][:size])
		copy(to[size:], m.Biases[from+u*size:][:size])
		clearSubnormals(m.ScaleKind, to)
	}
}

// scaleKind is the kind of scales as the kernels number it.
func scaleKind(k quant.Kind) uint32 {
	switch k {
	case quant.F16:
		return 1
	case quant.F32:
		return 2
	}
	return 0
}
