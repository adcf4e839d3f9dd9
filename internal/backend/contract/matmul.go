package contract

import (
	"fmt"

	"tfbatch/internal/backend"
)

func matmulChecks() []Check {
	return append(matmulChecksOf(storages()), Check{"matmul/row alone", func(l *lab) { matmulAlone(l, bf16Storage()) }})
}

func matmulChecksOf(storages []storage) []Check {
	var all []Check
	for _, f := range storages {
		all = append(all,
			Check{fmt.Sprintf("matmul/%v/inputs", f), func(l *lab) { matmulInputs(l, f) }},
			Check{fmt.Sprintf("matmul/%v/rows", f), func(l *lab) { matmulRows(l, f) }},
			Check{fmt.Sprintf("matmul/%v/outputs", f), func(l *lab) { matmulOutputs(l, f) }},
			Check{fmt.Sprintf("matmul/%v/values", f), func(l *lab) { matmulValues(l, f) }},
			Check{fmt.Sprintf("matmul/%v/joined", f), func(l *lab) { matmulJoined(l, f) }},
		)
	}
	return all
}

// matmul compares one product with the reference. Inputs are rounded up to what the storage can have.
func (l *lab) matmul(f storage, rows, inputs, outputs int, v values) {
	inputs = f.cols(inputs)
	w, seen := l.weight(f, inputs, v, outputs)
	x := l.draw(rows, inputs, v)
	in, out := l.buffer(x), l.empty(rows, outputs)
	got := l.run(out, func(p backend.Pass) { p.MatMul(out, in, w) })
	l.equal(fmt.Sprintf("%d rows of %d inputs, %d outputs", rows, inputs, outputs), got, seen.product(flushed(x)))
}

// matmulInputs walks K over every number of chains, short last units and odd ends.
func matmulInputs(l *lab, f storage) {
	for _, k := range []int{1, 2, 3, 7, 31, 63, 64, 65, 96, 127, 128, 130, 191, 255, 256, 257, 320, 400, 449, 511, 512, 513, 576, 1000, 1031, 2048} {
		l.matmul(f, 1, k, 17, cancelling)
		l.matmul(f, 3, k, 33, gauss)
	}
}

// matmulRows walks the row count over every kernel and the splits of larger ones.
func matmulRows(l *lab, f storage) {
	for rows := 1; rows <= 33; rows++ {
		l.matmul(f, rows, 195, 99, cancelling) // seven panels of 16: fours, twos and ones
	}
	l.matmul(f, 70, 640, 16, gauss)
}

// matmulOutputs walks the outputs over full and cut panels.
func matmulOutputs(l *lab, f storage) {
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 96, 112, 128, 129, 160, 250, 1030} {
		l.matmul(f, 1, 128, n, cancelling)
		l.matmul(f, 2, 70, n, cancelling)
		l.matmul(f, 5, 64, n, gauss)
		l.matmul(f, 8, 65, n, gauss)
	}
}

func matmulValues(l *lab, f storage) {
	for _, v := range []values{tiny, odd} {
		for _, rows := range []int{1, 4, 7} {
			l.matmul(f, rows, 600, 40, v)
		}
	}
}

// matmulJoined fills one weight from matrices that end in the middle of a panel.
func matmulJoined(l *lab, f storage) {
	inputs := f.cols(130)
	w, seen := l.weight(f, inputs, gauss, 9, 16, 1, 41)
	x := l.draw(4, inputs, gauss)
	in, out := l.buffer(x), l.empty(4, seen.outputs())
	got := l.run(out, func(p backend.Pass) { p.MatMul(out, in, w) })
	l.equal("joined", got, seen.product(x))
}

// matmulAlone compares the device with itself: a row has the same bits in any company.
func matmulAlone(l *lab, f storage) {
	const inputs, outputs = 1536, 200
	w, _ := l.weight(f, inputs, cancelling, outputs)
	x := l.draw(19, inputs, cancelling)
	in, out := l.buffer(x), l.empty(len(x), outputs)
	together := l.run(out, func(p backend.Pass) { p.MatMul(out, in, w) })
	for i := range x {
		in, out := l.buffer(x[i:i+1]), l.empty(1, outputs)
		alone := l.run(out, func(p backend.Pass) { p.MatMul(out, in, w) })
		l.equal(fmt.Sprintf("row %d alone", i), alone, together[i:i+1])
	}
}
