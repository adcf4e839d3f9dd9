package main

import (
	"bytes"
	"fmt"
)

// unit, and the floats of a panel's input: see package cpu.
const (
	unit       = 64
	floatBytes = 4
	vecBytes   = 16 * floatBytes
)

// shape is the kernels of one row count: one panel at a time, and as many as registers allow.
type shape struct{ rows, panels int }

// shapes keep enough independent sums in flight for a latency of four cycles and two (x86) or
// four (arm64) fma a cycle, with registers left for weights and an input.
func shapes(t target) []shape {
	switch t.name() {
	case "AVX512":
		return []shape{{1, 4}, {2, 4}, {3, 4}, {4, 4}, {5, 2}, {6, 2}, {7, 2}, {8, 2}}
	case "AVX2":
		return []shape{{1, 4}, {2, 2}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}
	}
	return []shape{{1, 4}, {2, 2}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}
}

// weightFormat is how a kernel reads some consecutive inputs of a panel.
type weightFormat struct {
	name   string
	inputs int                 // of a turn of the loop
	bytes  int                 // that they take
	extra  func(f *fn) (v vec) // what widen wants in a register; nil for nothing
	widen  func(f *fn, d vec, m mem, j int, extra vec)
}

func formats() []weightFormat {
	return []weightFormat{
		{"BF16", 2, 4 * 16, func(f *fn) vec { return f.splats(0xffff0000)[0] }, func(f *fn, d vec, m mem, j int, mask vec) {
			f.load(f, d, m)
			if j == 0 {
				f.shiftLeft(f, d, d, 16)
			} else {
				f.and(f, d, d, mask)
			}
		}},
		{"F16", 2, 4 * 16, nil, func(f *fn, d vec, m mem, j int, _ vec) { f.loadF16(f, d, m.plus(j*32)) }},
		{"F32", 2, 8 * 16, nil, func(f *fn, d vec, m mem, j int, _ vec) { f.load(f, d, m.plus(j*64)) }},
	}
}

// matmuls emits the kernels of every weight format and their table.
func matmuls(f *file, table *bytes.Buffer) {
	for _, w := range formats() {
		tiles(f, table, "k.tiles[quant."+w.name+"]", func(s shape) string { return matmul(f, w, s) })
	}
}

// tiles emits the kernels of one weight format and the lines that put them into their place.
func tiles(f *file, table *bytes.Buffer, place string, emit func(s shape) string) {
	list := shapes(f.target)
	fmt.Fprintf(table, "\t%s.rows = %d\n", place, len(list))
	for _, s := range list {
		fmt.Fprintf(table, "\t%s.narrow[%d] = %s\n", place, s.rows, emit(shape{s.rows, 1}))
		if s.panels > 1 {
			fmt.Fprintf(table, "\t%s.wide[%d], %s.panels[%d] = %s, %d\n", place, s.rows, place, s.rows, emit(s), s.panels)
		}
	}
}

// tileKernel holds the registers of a matmul kernel.
type tileKernel struct {
	*fn
	shape
	w         weightFormat
	acc       [][]vec // [row][panel]
	wide      []vec   // weights of one input, [panel]
	x         vec
	extra     vec    // of the weight format
	sums      string // of the chain at hand
	k, last   string // the input, and the last one of the unit
	tmp       string
	first     string // the weights
	stride    string // from panel to panel
	panel     panels
	in        inputs
	tileBytes int

	accumulate func(sum, w, x vec, j int) // adds input j of a turn; nil is fma
}

// matmul emits rows × panels of dst = x·wᵀ. The sums of a unit stay in registers; those of the
// other chains wait in memory, which costs a load and a store per 64 inputs.
func matmul(f *file, w weightFormat, s shape) string {
	name := fmt.Sprintf("%sMatMul%sR%dP%d", f.lower(), w.name, s.rows, s.panels)
	g := &tileKernel{fn: f.begin(name, "(t *tile)", 8), shape: s, w: w, tileBytes: s.rows * s.panels * vecBytes}
	g.setUp()
	unit, loaded, pairs, odd, done, next := g.fresh("unit"), g.fresh("loaded"), g.fresh("pairs"), g.fresh("odd"), g.fresh("done"), g.fresh("next")

	g.label(unit)
	g.unitEnd()
	g.startSums(loaded)
	g.label(loaded)
	g.jumpIf(g.fn, g.k, ">=", g.last, odd)
	g.findAhead("tile_cols")
	g.label(pairs)
	g.announce(w.bytes)
	g.multiply(0)
	g.multiply(1)
	g.panel.step(w.bytes)
	g.in.step(w.inputs)
	g.jumpIf(g.fn, g.k, "<", g.last, pairs)
	g.label(odd)
	g.jumpIf(g.fn, g.k, ">", g.last, done)
	g.multiply(0)
	g.in.step(1)
	g.label(done)
	g.keepSums(next)
	g.label(next)
	g.field(g.tmp, "tile_cols")
	g.jumpIf(g.fn, g.k, "<", g.tmp, unit)

	g.fold()
	g.finish()
	g.end()
	return name
}

// field loads a field of the argument.
func (g *tileKernel) field(d, name string) {
	g.argument(g.fn, d, "t", 0)
	g.pointer(g.fn, d, field(d, name))
}

func (g *tileKernel) setUp() {
	if g.w.extra != nil {
		g.extra = g.w.extra(g.fn)
	}
	g.x = g.splat()
	g.wide = g.some(g.wideRegisters())
	for range g.rows {
		g.acc = append(g.acc, g.some(g.panels))
	}
	g.tmp, g.k, g.last, g.sums = g.reg(), g.reg(), g.reg(), g.reg()
	g.first, g.stride = g.reg(), g.reg()
	rows := make([]string, g.rows)
	g.argument(g.fn, g.tmp, "t", 0)
	g.pointer(g.fn, g.first, field(g.tmp, "tile_weights"))
	g.pointer(g.fn, g.stride, field(g.tmp, "tile_stride"))
	g.pointer(g.fn, g.sums, field(g.tmp, "tile_sums"))
	for r := range rows {
		rows[r] = g.reg()
		g.pointer(g.fn, rows[r], field(g.tmp, "tile_x").plus(8*r))
	}
	g.set(g.fn, g.k, 0)
	g.panel = g.target.panels(g.fn, g.first, g.stride, g.panels)
	g.in = g.inputs(g.fn, rows, g.k)
}

// wideRegisters is how many panels' weights are in registers: with one row each is used once.
func (g *tileKernel) wideRegisters() int {
	if g.rows == 1 {
		return min(g.panels, 2)
	}
	return g.panels
}

// unitEnd sets last to the last input of the unit.
func (g *tileKernel) unitEnd() {
	whole := g.fresh("whole")
	g.copy(g.fn, g.last, g.k)
	g.add(g.fn, g.last, unit)
	g.field(g.tmp, "tile_cols")
	g.jumpIf(g.fn, g.last, "<=", g.tmp, whole)
	g.copy(g.fn, g.last, g.tmp)
	g.label(whole)
	g.add(g.fn, g.last, -1)
}

// startSums takes up the sums of a chain: zeros for its first unit.
func (g *tileKernel) startSums(loaded string) {
	again := g.fresh("again")
	g.field(g.tmp, "tile_chains")
	g.scaleReg(g.fn, g.tmp, unit)
	g.jumpIf(g.fn, g.k, ">=", g.tmp, again)
	g.each(func(v vec, _ int) { g.zero(g.fn, v) })
	g.jump(g.fn, loaded)
	g.label(again)
	g.each(func(v vec, i int) { g.load(g.fn, v, at(g.sums, i*vecBytes)) })
}

// aheadBytes is how far ahead of their use the weights of a panel are asked for. Left to the
// prefetcher of the machine, eight rows whose weights come from memory run at half their speed:
// a stream ends with its panel. A multiple of 4 KiB would fall on the cache sets now in use.
const aheadBytes = 6 << 10

// asksAhead: one or two rows wait for memory anyway, and only lose by more instructions.
func (g *tileKernel) asksAhead() bool { return g.panel.ahead != nil && g.rows > 2 }

// findAhead points tmp at the weights aheadBytes on, in these panels or in the next ones; end is the field
// where the inputs end.
func (g *tileKernel) findAhead(end string) {
	if !g.asksAhead() {
		return
	}
	here := g.fresh("here")
	found := g.fresh("found")
	g.field(g.tmp, end)
	g.subReg(g.fn, g.tmp, g.k)
	g.jumpIf(g.fn, g.tmp, ">", g.w.inputs*aheadBytes/g.w.bytes, here)
	g.copy(g.fn, g.tmp, g.first)
	for range g.panels - 1 {
		g.addReg(g.fn, g.tmp, g.stride)
	}
	g.jump(g.fn, found)
	g.label(here)
	g.copy(g.fn, g.tmp, g.first)
	g.label(found)
	g.add(g.fn, g.tmp, aheadBytes)
}

// announce asks for the weights that a later turn of the loop takes, or for other bytes behind them.
func (g *tileKernel) announce(bytes int) {
	if !g.asksAhead() {
		return
	}
	for _, m := range g.panel.ahead(g.tmp) {
		for line := 0; line < bytes; line += 64 {
			g.prefetch(g.fn, m.plus(line))
		}
	}
	g.add(g.fn, g.tmp, bytes)
}

// each visits the sums in the order in which they lie in memory.
func (g *tileKernel) each(do func(v vec, i int)) {
	for r, row := range g.acc {
		for p, v := range row {
			do(v, r*g.panels+p)
		}
	}
}

// multiply adds input k+j of all rows and panels.
func (g *tileKernel) multiply(j int) {
	if g.rows == 1 {
		g.in.next(g.x, 0, j)
		for p, m := range g.panel.at {
			w := g.wide[p%len(g.wide)]
			g.w.widen(g.fn, w, m, j, g.extra)
			g.addTo(g.acc[0][p], w, j)
		}
		return
	}
	for p, m := range g.panel.at {
		g.w.widen(g.fn, g.wide[p], m, j, g.extra)
	}
	for r, row := range g.acc {
		g.in.next(g.x, r, j)
		for p, v := range row {
			g.addTo(v, g.wide[p], j)
		}
	}
}

// addTo adds weights times the input at hand, the j-th of a turn, to sums.
func (g *tileKernel) addTo(sum, w vec, j int) {
	if g.accumulate != nil {
		g.accumulate(sum, w, g.x, j)
		return
	}
	g.fma(g.fn, sum, w, g.x)
}

// keepSums puts the sums away and goes on to the next chain, after the last one to the first.
func (g *tileKernel) keepSums(next string) {
	g.each(func(v vec, i int) { g.store(g.fn, at(g.sums, i*vecBytes), v) })
	g.add(g.fn, g.sums, g.tileBytes)
	g.field(g.last, "tile_chains")
	g.scaleReg(g.fn, g.last, g.tileBytes)
	g.field(g.tmp, "tile_sums")
	g.addReg(g.fn, g.last, g.tmp)
	g.jumpIf(g.fn, g.sums, "<", g.last, next)
	g.copy(g.fn, g.sums, g.tmp)
}

// fold adds the upper half of the chains to the lower one until one is left.
func (g *tileKernel) fold() {
	level, add, folded := g.fresh("level"), g.fresh("add"), g.fresh("folded")
	half, low, high, count := g.last, g.sums, g.k, g.tmp
	a, b := g.acc[0][0], g.wide[0]
	g.field(half, "tile_chains")
	g.scaleReg(g.fn, half, g.tileBytes)
	g.label(level)
	g.halve(g.fn, half)
	g.jumpIf(g.fn, half, "<", g.tileBytes, folded)
	g.field(low, "tile_sums")
	g.copy(g.fn, high, low)
	g.addReg(g.fn, high, half)
	g.copy(g.fn, count, half)
	g.label(add)
	g.load(g.fn, a, at(low, 0))
	g.load(g.fn, b, at(high, 0))
	g.op(g.fn, "ADD", a, a, b)
	g.store(g.fn, at(low, 0), a)
	g.add(g.fn, low, vecBytes)
	g.add(g.fn, high, vecBytes)
	g.add(g.fn, count, -vecBytes)
	g.jumpIf(g.fn, count, ">", 0, add)
	g.jump(g.fn, level)
	g.label(folded)
}

// finish flushes the outputs and stores them.
func (g *tileKernel) finish() {
	g.vecs = 0 // the sums are in memory
	a, b, v := g.vec(), g.vec(), g.vec()
	m := g.masks(a, b)
	g.field(g.sums, "tile_sums")
	for r := range g.rows {
		g.argument(g.fn, g.k, "t", 0)
		g.pointer(g.fn, g.k, field(g.k, "tile_dst").plus(8*r))
		for p := range g.panels {
			g.load(g.fn, v, at(g.sums, (r*g.panels+p)*vecBytes))
			g.flush(g.fn, v, m)
			g.store(g.fn, at(g.k, p*vecBytes), v)
		}
	}
}
