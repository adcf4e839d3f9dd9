package kernels

import (
	"fmt"

	"tfbatch/quant"
)

// Weight is a packed weight in memory.
type Weight struct {
	Layout
	Codes, Scales Span
	ScaleKind     quant.Kind
}

// formatKernels are the matrix kernels of one format.
type formatKernels struct {
	rows      [4]*Kernel // for 1, 2, 4 and 8 rows
	wide      int        // tiles of a threadgroup of rows[3]
	odd       *Kernel    // 4 rows of inputs that are no multiple of 32; nil for affine
	pair      *Kernel    // an expert's matrix and one row
	block     *Kernel    // an expert's matrix and 4 rows
	oddExpert *Kernel
	code      uint32 // the format as embed numbers it
}

// kernelsFor is the table of formats.
func kernelsFor(f quant.Format) (formatKernels, error) {
	switch f.Kind {
	case quant.BF16:
		return formatKernels{[4]*Kernel{&kMatmulBf161, &kMatmulBf162, &kMatmulBf164, &kMatmulBf168}, 2, &kMatmulBf16Odd, &kExpertBf161, &kExpertBf164, &kExpertBf16Odd, 16}, nil
	case quant.F16:
		return formatKernels{[4]*Kernel{&kMatmulF161, &kMatmulF162, &kMatmulF164, &kMatmulF168}, 1, &kMatmulF16Odd, &kExpertF161, &kExpertF164, &kExpertF16Odd, 17}, nil
	case quant.F32:
		return formatKernels{[4]*Kernel{&kMatmulF321, &kMatmulF322, &kMatmulF324, &kMatmulF328}, 2, &kMatmulF32Odd, &kExpertF321, &kExpertF324, &kExpertF32Odd, 32}, nil
	case quant.Affine:
		return affineKernels(f)
	}
	return formatKernels{}, fmt.Errorf("weight format %v is not supported", f)
}

func affineKernels(f quant.Format) (formatKernels, error) {
	k := formatKernels{wide: 2, code: uint32(f.Bits)}
	switch f.Bits {
	case 2:
		k.rows = [4]*Kernel{&kMatmulAffine21, &kMatmulAffine22, &kMatmulAffine24, &kMatmulAffine28}
		k.pair, k.block = &kExpertAffine21, &kExpertAffine24
	case 3:
		k.rows = [4]*Kernel{&kMatmulAffine31, &kMatmulAffine32, &kMatmulAffine34, &kMatmulAffine38}
		k.pair, k.block = &kExpertAffine31, &kExpertAffine34
	case 4:
		k.rows = [4]*Kernel{&kMatmulAffine41, &kMatmulAffine42, &kMatmulAffine44, &kMatmulAffine48}
		k.pair, k.block = &kExpertAffine41, &kExpertAffine44
	case 5:
		k.rows = [4]*Kernel{&kMatmulAffine51, &kMatmulAffine52, &kMatmulAffine54, &kMatmulAffine58}
		k.pair, k.block = &kExpertAffine51, &kExpertAffine54
	case 6:
		k.rows = [4]*Kernel{&kMatmulAffine61, &kMatmulAffine62, &kMatmulAffine64, &kMatmulAffine68}
		k.pair, k.block = &kExpertAffine61, &kExpertAffine64
	case 8:
		k.rows = [4]*Kernel{&kMatmulAffine81, &kMatmulAffine82, &kMatmulAffine84, &kMatmulAffine88}
		k.pair, k.block = &kExpertAffine81, &kExpertAffine84
	default:
		return k, fmt.Errorf("weight format %v is not supported, want 2, 3, 4, 5, 6 or 8 bits", f)
	}
	return k, nil
}

// SumBytes is the size of the scratch that a product of rows rows of x needs, 0 for none.
func (l Layout) SumBytes(rows int) int64 {
	if l.Format.Kind != quant.Affine || rows <= rowsThatSum {
		return 0
	}
	return 4 * int64(rows) * int64(l.units())
}

// rowsThatSum is up to where kernels sum the inputs as they go.
const rowsThatSum = 2

// unitSums fills the scratch, if one is needed.
func unitSums(sums, x Span, l Layout, rows int) []Launch {
	if sums.Mem == nil {
		return nil
	}
	const threads = 64
	n := rows * l.units()
	return []Launch{launchUnitsums(&kUnitSums, [3]uint32{uint32(ceilDiv(n, threads)), 1, 1}, x, sums, unitsumsArgs{
		N: uint32(n), Units: uint32(l.units()), Width: uint32(l.unit()),
	})}
}

// MatMul is y [rows, w.Rows] = x [rows, w.Cols]·wᵀ, with scratch of w.SumBytes(rows) bytes.
// Any choice of kernel gives the same bits.
func MatMul(y, x, sums Span, w Weight, rows int) []Launch {
	k, err := kernelsFor(w.Format)
	if err != nil {
		panic("kernels: matmul: " + err.Error()) // Layout.Check refused it
	}
	kernel, height, width := k.rows[0], 1, 1
	switch {
	case w.Cols%runInputs != 0:
		kernel, height = k.odd, 4
	case rows > 4:
		kernel, height, width = k.rows[3], 8, k.wide
	case rows > 2:
		kernel, height = k.rows[2], 4
	case rows == 2:
		kernel, height = k.rows[1], 2
	}
	grid := [3]uint32{uint32(ceilDiv(w.tiles(), width)), uint32(ceilDiv(rows, height)), 1}
	return append(unitSums(sums, x, w.Layout, rows), launchMatmul(kernel, grid, w.Codes, w.Scales, x, sums, y, matmulArgs{
		Rows: uint32(rows), Outs: uint32(w.Rows), Cols: uint32(w.Cols), Units: uint32(w.units()), Runs: uint32(w.runs()),
		Chains: uint32(w.chains()), Scales: scaleKind(w.ScaleKind), Tiles: uint32(w.tiles()),
	}))
}
