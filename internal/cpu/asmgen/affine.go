package main

import (
	"bytes"
	"fmt"
)

// codeFormat is how a kernel reads codes of some bits: a word of each output holds 32/bits of them, the
// first in the lowest bits.
func codeFormat(bits int) weightFormat {
	w := weightFormat{name: fmt.Sprintf("Affine%d", bits), inputs: 32 / bits, bytes: vecBytes}
	code := func(f *fn, d vec, m mem, j int) {
		f.load(f, d, m)
		if j > 0 {
			f.shiftRight(f, d, d, j*bits)
		}
	}
	w.extra = func(f *fn) vec { return f.splats(1<<bits - 1)[0] }
	w.widen = func(f *fn, d vec, m mem, j int, mask vec) {
		code(f, d, m, j)
		if j < w.inputs-1 {
			f.and(f, d, d, mask)
		}
		f.toFloat(f, d, d)
	}
	return w
}

// pickedFormat is codeFormat(4) where a register of 16 floats can be indexed: a conversion and a mask less.
func pickedFormat(x x86) weightFormat {
	w := codeFormat(4)
	w.extra = func(f *fn) vec {
		table := f.vec()
		x.countTo15(f, table)
		return table
	}
	w.widen = func(f *fn, d vec, m mem, j int, table vec) {
		f.load(f, d, m)
		if j > 0 {
			f.shiftRight(f, d, d, j*4)
		}
		x.pick(f, d, d, table)
	}
	return w
}

// affines emits the kernels of affine weights and their table. Codes of 4 and 8 bits are multiplied as
// they are stored; the others are unpacked to 8 bits before.
func affines(f *file, table *bytes.Buffer) {
	four := codeFormat(4)
	if x, ok := f.target.(x86); ok && x.wide {
		four = pickedFormat(x)
	}
	tiles(f, table, "k.affine[4]", func(s shape) string { return affine(f, four, s) })
	tiles(f, table, "k.affine[8]", func(s shape) string { return affine(f, codeFormat(8), s) })
	for _, bits := range []int{2, 3, 5, 6} {
		fmt.Fprintf(table, "\tk.affine[%d] = k.affine[8]\n", bits)
		fmt.Fprintf(table, "\tk.affine[%d].unpack = %s\n", bits, unpack(f, bits))
	}
}

// affine emits rows × panels of dst = x·wᵀ. The sums of codes times inputs of a unit stay in registers;
// at its end they are scaled and added to the sums of the chain, which wait in memory, and so is the bias
// times the sum of the inputs, which x has behind them.
func affine(f *file, w weightFormat, s shape) string {
	name := fmt.Sprintf("%sMatMul%sR%dP%d", f.lower(), w.name, s.rows, s.panels)
	g := &tileKernel{fn: f.begin(name, "(t *tile)", 8), shape: s, w: w, tileBytes: s.rows * s.panels * vecBytes}
	g.setUp()
	var spare vec
	if g.registers() >= 32 {
		spare = g.splat()
	}
	g.clearSums()
	unit, words, next := g.fresh("unit"), g.fresh("words"), g.fresh("next")

	g.label(unit)
	g.field(g.last, "tile_unit")
	g.addReg(g.fn, g.last, g.k)
	g.each(func(v vec, _ int) { g.zero(g.fn, v) })
	g.findAhead("tile_width")
	g.label(words)
	g.announce(w.bytes)
	for j := range w.inputs {
		g.multiply(j)
	}
	g.panel.step(w.bytes)
	g.in.step(w.inputs)
	g.jumpIf(g.fn, g.k, "<", g.last, words)
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

// clearSums sets the sums of all chains to zero.
func (g *tileKernel) clearSums() {
	clear, at0, zero := g.fresh("clear"), g.last, g.acc[0][0]
	g.zero(g.fn, zero)
	g.copy(g.fn, at0, g.sums)
	g.field(g.tmp, "tile_chains")
	g.scaleReg(g.fn, g.tmp, g.tileBytes)
	g.label(clear)
	g.store(g.fn, at(at0, 0), zero)
	g.add(g.fn, at0, vecBytes)
	g.add(g.fn, g.tmp, -vecBytes)
	g.jumpIf(g.fn, g.tmp, ">", 0, clear)
}

// scaled ends a unit; the scales and then the biases of a panel follow its codes, in either of two types.
func (g *tileKernel) scaled(spare vec) {
	floats, done := g.fresh("floats"), g.fresh("done")
	g.announce(vecBytes)
	g.field(g.tmp, "tile_scaleBytes")
	g.jumpIf(g.fn, g.tmp, "==", floatBytes, floats)
	g.factors(spare, 2, func(d vec, m mem) { g.loadBF16(g.fn, d, m) })
	g.jump(g.fn, done)
	g.label(floats)
	g.factors(spare, floatBytes, func(d vec, m mem) { g.load(g.fn, d, m) })
	g.label(done)
	g.in.step(1)
}

// factors adds scale · sum of the unit, then bias · sum of the inputs, to the sums of the chain.
func (g *tileKernel) factors(spare vec, size int, load func(d vec, m mem)) {
	for p, m := range g.panel.at {
		scale := g.wide[p%len(g.wide)]
		load(scale, m)
		for r, row := range g.acc {
			g.mulAdd(g.fn, row[p], scale, at(g.sums, (r*g.panels+p)*vecBytes), spare)
		}
	}
	biases := func(p int) mem { return g.panel.at[p].plus(16 * size) }
	if g.rows > 1 {
		for p := range g.panel.at {
			load(g.wide[p], biases(p))
		}
	}
	for r, row := range g.acc {
		g.in.next(g.x, r, 0)
		for p, v := range row {
			bias := g.wide[p%len(g.wide)]
			if g.rows == 1 {
				load(bias, biases(p))
			}
			g.fma(g.fn, v, bias, g.x)
		}
	}
	g.panel.step(2 * 16 * size)
}

// unpack emits the kernel that turns blocks of 32 codes of every output into codes of 8 bits.
func unpack(f *file, bits int) string {
	name := fmt.Sprintf("%sUnpack%d", f.lower(), bits)
	g := f.begin(name, "(dst, src unsafe.Pointer, blocks int)", 24)
	mask := g.splats(1<<bits - 1)[0]
	dst, src, left, loop := g.reg(), g.reg(), g.reg(), g.fresh("loop")
	word, code, rest := g.vec(), g.vec(), g.vec()
	g.argument(g, dst, "dst", 0)
	g.argument(g, src, "src", 8)
	g.argument(g, left, "blocks", 16)
	g.label(loop)
	for i := range 32 {
		g.code(code, rest, src, i*bits, bits, mask)
		if i%4 == 0 {
			g.move(g, word, code)
			continue
		}
		g.shiftLeft(g, code, code, i%4*8)
		g.addInt(g, word, word, code) // of different bits
		if i%4 == 3 {
			g.store(g, at(dst, i/4*vecBytes), word)
		}
	}
	g.add(g, src, bits*vecBytes)
	g.add(g, dst, 8*vecBytes)
	g.add(g, left, -1)
	g.jumpIf(g, left, ">", 0, loop)
	g.end()
	return name
}

// code extracts bits of the string of words at src from bit on, which may lie in two words.
func (f *fn) code(d, rest vec, src string, bit, bits int, mask vec) {
	word, shift := bit/32, bit%32
	f.load(f, d, at(src, word*vecBytes))
	if shift > 0 {
		f.shiftRight(f, d, d, shift)
	}
	if over := shift + bits - 32; over > 0 {
		f.load(f, rest, at(src, (word+1)*vecBytes))
		f.shiftLeft(f, rest, rest, bits-over)
		f.addInt(f, d, d, rest)
	}
	f.and(f, d, d, mask)
}
