package contract

import (
	"fmt"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// Int8Checks are those of a device that computes in the arithmetic of ../I8.md: the products that differ.
// All else is held by [Checks].
func Int8Checks() []Check {
	affine := slices.DeleteFunc(storages(), func(s storage) bool { return s.Kind != quant.Affine })
	all := append(matmulChecksOf(affine), expertChecks(affine)...)
	for _, f := range affine {
		all = append(all,
			Check{fmt.Sprintf("matmul/%v/border", f), func(l *lab) { matmulBorder(l, f) }},
			Check{fmt.Sprintf("matmul/%v/row alone", f), func(l *lab) { matmulAlone(l, f) }})
	}
	for i, c := range all {
		all[i] = Check{"int8/" + c.Name, func(l *lab) {
			l.int8 = true
			c.do(l)
		}}
	}
	return all
}

// matmulBorder has units of inputs that count as zeros beside others that do not.
func matmulBorder(l *lab, f storage) {
	inputs := f.cols(600)
	w, seen := l.weight(f, inputs, gauss, 40)
	x := l.draw(5, inputs, border)
	for i := range x { // every other unit is well below
		for k := range x[i] {
			if k/f.Group%2 == 1 {
				x[i][k] *= 0x1p-5
			}
		}
	}
	in, out := l.buffer(x), l.empty(len(x), seen.outputs())
	got := l.run(out, func(p backend.Pass) { p.MatMul(out, in, w) })
	l.equal("inputs around 2^-100", got, seen.product(x))
}
