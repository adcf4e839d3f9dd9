package kernels

import (
	"fmt"
	"iter"

	"tfbatch/quant"
)

// Weight is a packed weight in memory.
type Weight struct {
	Layout
	Codes, Scales Span
	ScaleKind     quant.Kind
}

// shape is a kernel whose threadgroups own so many rows and tiles of outputs.
type shape struct {
	rows, tiles int
	kernel      *Kernel
}

// formatKernels are the matrix kernels of one format.
type formatKernels struct {
	code           uint32 // the format as the kernels number it
	rows           []shape
	pair           []shape  // of one (row, rank) pair
	block          [2]shape // of a few pairs of one expert, and of many
	odd, oddExpert *Kernel  // for inputs that are no multiple of 32; nil for affine, whose groups are
}

// kernelsFor is the table of formats.
func kernelsFor(f quant.Format) (formatKernels, error) {
	switch f.Kind {
	case quant.BF16:
		return formatKernels{
			code: 16, rows: []shape{{1, 1, &kMatmulBf161x1}, {1, 2, &kMatmulBf161x2}, {2, 4, &kMatmulBf162x4}, {4, 4, &kMatmulBf164x4}, {8, 4, &kMatmulBf168x4}},
			pair: []shape{{1, 1, &kExpertBf161x1}, {1, 2, &kExpertBf161x2}}, block: [2]shape{{2, 4, &kExpertBf162x4}, {8, 4, &kExpertBf168x4}},
			odd: &kMatmulBf16Odd, oddExpert: &kExpertBf16Odd,
		}, nil
	case quant.F16:
		return formatKernels{
			code: 17, rows: []shape{{1, 1, &kMatmulF161x1}, {4, 1, &kMatmulF164x1}},
			pair: []shape{{1, 1, &kExpertF161x1}}, block: [2]shape{{2, 1, &kExpertF162x1}, {8, 1, &kExpertF168x1}},
			odd: &kMatmulF16Odd, oddExpert: &kExpertF16Odd,
		}, nil
	case quant.F32:
		return formatKernels{
			code: 32, rows: []shape{{1, 1, &kMatmulF321x1}, {4, 1, &kMatmulF324x1}},
			pair: []shape{{1, 1, &kExpertF321x1}}, block: [2]shape{{2, 1, &kExpertF322x1}, {8, 1, &kExpertF328x1}},
			odd: &kMatmulF32Odd, oddExpert: &kExpertF32Odd,
		}, nil
	case quant.Affine:
		return affineKernels(f)
	}
	return formatKernels{}, fmt.Errorf("weight format %v is not supported", f)
}

func affineKernels(f quant.Format) (formatKernels, error) {
	switch f.Bits {
	case 2:
		return formatKernels{
			code: 2, rows: []shape{{1, 1, &kMatmulAffine21x1}, {4, 1, &kMatmulAffine24x1}},
			pair: []shape{{1, 1, &kExpertAffine21x1}}, block: [2]shape{{2, 1, &kExpertAffine22x1}, {8, 1, &kExpertAffine28x1}},
		}, nil
	case 3:
		return formatKernels{
			code: 3, rows: []shape{{1, 1, &kMatmulAffine31x1}, {4, 1, &kMatmulAffine34x1}},
			pair: []shape{{1, 1, &kExpertAffine31x1}}, block: [2]shape{{2, 1, &kExpertAffine32x1}, {8, 1, &kExpertAffine38x1}},
		}, nil
	case 4:
		return formatKernels{
			code: 4, rows: []shape{{1, 1, &kMatmulAffine41x1}, {1, 2, &kMatmulAffine41x2}, {2, 4, &kMatmulAffine42x4}, {4, 4, &kMatmulAffine44x4}, {8, 4, &kMatmulAffine48x4}},
			pair: []shape{{1, 1, &kExpertAffine41x1}, {1, 2, &kExpertAffine41x2}}, block: [2]shape{{2, 4, &kExpertAffine42x4}, {8, 4, &kExpertAffine48x4}},
		}, nil
	case 5:
		return formatKernels{
			code: 5, rows: []shape{{1, 1, &kMatmulAffine51x1}, {4, 1, &kMatmulAffine54x1}},
			pair: []shape{{1, 1, &kExpertAffine51x1}}, block: [2]shape{{2, 1, &kExpertAffine52x1}, {8, 1, &kExpertAffine58x1}},
		}, nil
	case 6:
		return formatKernels{
			code: 6, rows: []shape{{1, 1, &kMatmulAffine61x1}, {1, 2, &kMatmulAffine61x2}, {2, 4, &kMatmulAffine62x4}, {4, 4, &kMatmulAffine64x4}, {8, 4, &kMatmulAffine68x4}},
			pair: []shape{{1, 1, &kExpertAffine61x1}, {1, 2, &kExpertAffine61x2}}, block: [2]shape{{2, 4, &kExpertAffine62x4}, {8, 4, &kExpertAffine68x4}},
		}, nil
	case 8:
		return formatKernels{
			code: 8, rows: []shape{{1, 1, &kMatmulAffine81x1}, {1, 2, &kMatmulAffine81x2}, {2, 4, &kMatmulAffine82x4}, {4, 4, &kMatmulAffine84x4}, {8, 4, &kMatmulAffine88x4}},
			pair: []shape{{1, 1, &kExpertAffine81x1}, {1, 2, &kExpertAffine81x2}}, block: [2]shape{{2, 4, &kExpertAffine82x4}, {8, 4, &kExpertAffine88x4}},
		}, nil
	}
	return formatKernels{}, fmt.Errorf("weight format %v is not supported, want 2, 3, 4, 5, 6 or 8 bits", f)
}

// manyGroups is how many threadgroups fill a large GPU well enough; more of them would each
// use what they load less often.
const manyGroups = 64

// choose takes the largest shape that still fills the GPU with rows rows and tiles tiles,
// or else the one of the most threadgroups.
func choose(shapes []shape, rows, tiles int) shape {
	best, most := shapes[0], 0
	for _, s := range shapes {
		if s.rows/2 >= rows {
			continue // half of its rows would be empty
		}
		groups := s.grid(rows, tiles)
		n := int(groups[0] * groups[1])
		if n >= manyGroups || n > most {
			best, most = s, min(n, manyGroups)
		}
	}
	return best
}

// grid is the threadgroups for so many rows and tiles.
func (s shape) grid(rows, tiles int) [3]uint32 {
	return [3]uint32{uint32(ceilDiv(tiles, s.tiles)), uint32(ceilDiv(rows, s.rows)), 1}
}

// SumBytes is the size of the scratch that a product of rows rows of x needs, 0 for none.
func (l Layout) SumBytes(rows int) int64 {
	if l.Format.Kind != quant.Affine {
		return 0
	}
	return 4 * int64(rows) * int64(l.units())
}

// rowsThatSum is up to which rows a kernel sums its inputs as it goes, as in matmul.h.
const rowsThatSum = 2

// unitSums fills the scratch of a kernel of shape s, if it reads one.
func unitSums(sums, x Span, l Layout, rows int, s shape) []Launch {
	if l.Format.Kind != quant.Affine || s.rows <= rowsThatSum {
		return nil
	}
	const threads = 64
	n := rows * l.units()
	return []Launch{launchUnitsums(&kUnitSums, [3]uint32{uint32(ceilDiv(n, threads)), 1, 1}, x, sums, unitsumsArgs{
		N: uint32(n), Units: uint32(l.units()), Width: uint32(l.unit()),
	})}
}

// MatMul is y [rows, w.Rows] = x [rows, w.Cols]·wᵀ, with scratch of w.SumBytes(rows) bytes, in
// launches of at most `most` multiply-adds where a row has no more. Any choice of kernel and
// of cuts gives the same bits.
func MatMul(y, x, sums Span, w Weight, rows int, most int64) []Launch {
	var all []Launch
	each := w.rowWork()
	for c := range cuts(rows, most/each, cutRows) {
		at := int64(c.first)
		part := matMul(y.From(4*at*int64(w.Rows)), x.From(4*at*int64(w.Cols)), sums, w, c.count)
		part[len(part)-1].Work = int64(c.count) * each
		all = append(all, part...)
	}
	return all
}

// cutRows is what cuts of rows are multiples of: the rows of the largest shape.
const cutRows = 8

// rowWork is the multiply-adds of a row.
func (l Layout) rowWork() int64 { return int64(l.Rows) * int64(l.Cols) }

// piece is count of n things from the first.
type piece struct{ first, count int }

// cuts cuts n things into pieces of at most `most`, but no fewer than one, and a multiple of
// unit where that many go.
func cuts(n int, most int64, unit int) iter.Seq[piece] {
	size := int(max(min(most, int64(n)), 1))
	if size >= unit && size < n {
		size -= size % unit
	}
	return func(yield func(piece) bool) {
		for first := 0; first < n; first += size {
			if !yield(piece{first, min(size, n-first)}) {
				return
			}
		}
	}
}

func matMul(y, x, sums Span, w Weight, rows int) []Launch {
	k, err := kernelsFor(w.Format)
	if err != nil {
		panic("kernels: matmul: " + err.Error()) // Layout.Check refused it
	}
	s := choose(k.rows, rows, w.tiles())
	if w.Cols%runInputs != 0 {
		s = shape{4, 1, k.odd}
	}
	return append(unitSums(sums, x, w.Layout, rows, s), launchMatmul(s.kernel, s.grid(rows, w.tiles()), w.Codes, w.Scales, x, sums, y, matmulArgs{
		Rows: uint32(rows), Outs: uint32(w.Rows), Cols: uint32(w.Cols), Units: uint32(w.units()), Runs: uint32(w.runs()),
		Chains: uint32(w.chains()), Scales: scaleKind(w.ScaleKind), Tiles: uint32(w.tiles()),
	}))
}
