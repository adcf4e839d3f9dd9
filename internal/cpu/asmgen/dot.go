package main

import (
	"bytes"
	"fmt"
)

// dotFormat is how a kernel of i8-v1 multiplies codes of weights with codes of inputs, which it meets in
// words of 32 bits: 16 words of a panel, one for each output, times one word of a row.
type dotFormat struct {
	weightFormat
	layout string // of the inputs, as package cpu names it

	// add adds input word j of a turn, times weights, to integer sums.
	add func(f *fn, sum, w, x, spare vec, j int)
	// short is whether integer sums would overflow after a turn. Then settle widens them; those of earlier turns
	// of the unit wait in memory, from where wait adds them.
	short  bool
	settle func(f *fn, sum vec)
	wait   func(f *fn, sum vec, m mem)
	// spares is whether add works in a register of its own.
	spares bool
}

// centred is the layout whose first word is what the sums of a unit start with.
const centred = "centred"

// dots emits the kernels of affine weights in i8-v1, their table, and what rounds inputs.
func dots(f *file, table *bytes.Buffer) {
	for _, bits := range []int{4, 8} {
		d := f.dotFormat(f, bits)
		place := fmt.Sprintf("k.dot[%d]", bits)
		tiles(f, table, place, func(s shape) string { return dot(f, d, bits, s) })
		fmt.Fprintf(table, "\t%s.layout = %s\n", place, d.layout)
	}
	for _, bits := range []int{2, 3, 5, 6} {
		fmt.Fprintf(table, "\tk.dot[%d] = k.dot[8]\n", bits)
		fmt.Fprintf(table, "\tk.dot[%d].unpack = %sUnpack%d\n", bits, f.lower(), bits)
	}
	name := f.lower() + "Magnitude"
	magnitude(f, name)
	fmt.Fprintf(table, "\tk.magnitude = %s\n", name)
	name = f.lower() + "Codes"
	f.loop(name, "(dst []int32, x []float32, r float32)", []string{"dst", "x"}, 1, codes)
	fmt.Fprintf(table, "\tk.codes = %s\n", name)
	fmt.Fprintf(table, "\tk.dotPeak = %s\n", dotPeak(f))
}

// dot emits rows × panels of dst = x·wᵀ in i8-v1. The integer sums of a unit stay in registers; at its
// end they become floats, and go with the factors of the unit into the sums that wait in memory.
func dot(f *file, w dotFormat, bits int, s shape) string {
	name := fmt.Sprintf("%sDot%dR%dP%d", f.lower(), bits, s.rows, s.panels)
	g := &tileKernel{fn: f.begin(name, "(t *tile)", 8), shape: s, w: w.weightFormat, tileBytes: s.rows * s.panels * vecBytes}
	g.setUp()
	var spare, own vec
	if g.registers() >= 32 {
		spare = g.splat()
	}
	if w.spares {
		own = g.splat()
	}
	g.accumulate = func(sum, wide, x vec, j int) { w.add(g.fn, sum, wide, x, own, j) }
	g.clearSums()
	unit, words, next := g.fresh("unit"), g.fresh("words"), g.fresh("next")

	g.label(unit)
	g.startDots(w)
	g.field(g.last, "tile_unit")
	g.addReg(g.fn, g.last, g.k)
	g.findAhead("tile_width")
	if w.short {
		g.shortTurns(w)
	} else {
		g.label(words)
		g.turn(w)
		g.jumpIf(g.fn, g.k, "<", g.last, words)
	}
	g.stepped()
	g.scaled(spare)
	g.keepSums(next)
	g.label(next)
	g.field(g.tmp, "tile_width")
	g.jumpIf(g.fn, g.k, "<", g.tmp, unit)

	g.fold()
	g.finish()
	g.end()
	return name
}

// turn multiplies some words of all panels and goes on to the next.
func (g *tileKernel) turn(w dotFormat) {
	g.announce(w.bytes)
	for j := range w.inputs {
		g.multiply(j)
	}
	g.panel.step(w.bytes)
	g.in.step(w.inputs)
}

// shortTurns are those of a unit whose sums are short: what the first ones gave waits in memory.
func (g *tileKernel) shortTurns(w dotFormat) {
	words, first, more, done := g.fresh("words"), g.fresh("first"), g.fresh("more"), g.fresh("done")
	start := g.reg()
	waiting := func(i int) mem { return at(g.sums, g.tileBytes+i*vecBytes) }
	g.copy(g.fn, start, g.k)
	g.add(g.fn, start, w.inputs)
	g.label(words)
	g.turn(w)
	g.each(func(v vec, _ int) { w.settle(g.fn, v) })
	g.jumpIf(g.fn, g.k, "<=", start, first)
	g.each(func(v vec, i int) { w.wait(g.fn, v, waiting(i)) })
	g.label(first)
	g.jumpIf(g.fn, g.k, "<", g.last, more)
	g.jump(g.fn, done)
	g.label(more)
	g.each(func(v vec, i int) { g.store(g.fn, waiting(i), v) })
	g.jump(g.fn, words)
	g.label(done)
}

// startDots sets the integer sums of a unit to what they start with.
func (g *tileKernel) startDots(w dotFormat) {
	switch {
	case w.short: // its turns do
	case w.layout == centred:
		for r, row := range g.acc {
			g.in.next(g.x, r, 0)
			for _, v := range row {
				g.move(g.fn, v, g.x)
			}
		}
		g.in.step(1)
	default:
		g.each(func(v vec, _ int) { g.zero(g.fn, v) })
	}
}

// stepped turns the sums of a unit into floats and multiplies them by the step of its inputs.
func (g *tileKernel) stepped() {
	for r, row := range g.acc {
		g.in.next(g.x, r, 0)
		for _, v := range row {
			g.signedToFloat(g.fn, v, v)
			g.op(g.fn, "MUL", v, v, g.x)
		}
	}
	g.in.step(1)
}

// magnitude is the largest of all floats without their sign, as bits; there are at least 16.
func magnitude(f *file, name string) {
	g := &loopKernel{fn: f.begin(name, "(x []float32) (bits uint32)", sliceBytes+floatBytes)}
	mask := g.splats(0x7fffffff)[0]
	x := g.reg()
	g.ptr, g.left = []string{x}, g.reg()
	g.argument(g.fn, x, "x_base", 0)
	g.argument(g.fn, g.left, "x_len", 8)
	m, v := g.vec(), g.vec()
	g.zero(g.fn, m)
	g.turns(16, func() {
		g.in(0, v)
		g.and(g.fn, v, v, mask)
		g.maxInt(g.fn, m, m, v)
	})
	g.largestInt(g.fn, m, v)
	g.result(g.fn, "bits", sliceBytes, m)
	g.end()
}

// codes rounds x·r to integers.
func codes(g *loopKernel) func() {
	x, r := g.vec(), g.splat()
	g.scalar(g.fn, r, "r", 2*sliceBytes)
	return func() {
		g.in(1, x)
		g.op(g.fn, "MUL", x, x, r)
		g.toInt(g.fn, x, x)
		g.out(0, x)
	}
}

// dotPeak does independent products of codes of 4 bits on registers alone.
func dotPeak(f *file) string {
	name := f.lower() + "DotPeak"
	g := f.begin(name, "(turns int) (macs int)", 16)
	d := f.dotFormat(f, 4)
	n, loop := g.reg(), g.fresh("loop")
	const spares = 4
	sums := min((g.registers()-spares-1)/f.width(), 20)
	v := g.some(sums)
	x := g.splat()
	spare := make([]vec, spares)
	for i := range spare {
		spare[i] = g.splat()
	}
	for _, d := range append(v, x) {
		g.zero(g, d)
	}
	g.argument(g, n, "turns", 0)
	g.label(loop)
	for i, s := range v {
		d.add(g, s, x, x, spare[i%spares], 1)
	}
	g.add(g, n, -1)
	g.jumpIf(g, n, ">", 0, loop)
	g.set(g, n, sums*16*4)
	g.note("multiply-adds of a turn")
	g.returned(g, "macs", 8, n)
	g.end()
	return name
}
