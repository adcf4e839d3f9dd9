package main

import (
	"bytes"
	"fmt"
)

// limits emits the loops that measure what a machine can do at best.
func limits(f *file, table *bytes.Buffer) {
	fmt.Fprintf(table, "\tk.read, k.peak = %s, %s\n", readLoop(f), peakLoop(f))
}

// readLoop loads memory and drops it, four cache lines a turn; bytes is a multiple of 256.
func readLoop(f *file) string {
	name := f.lower() + "Read"
	g := f.begin(name, "(p unsafe.Pointer, bytes int)", 16)
	p, left, loop := g.reg(), g.reg(), g.fresh("loop")
	v := g.some(4)
	g.argument(g, p, "p", 0)
	g.argument(g, left, "bytes", 8)
	g.label(loop)
	for i, d := range v {
		g.load(g, d, at(p, i*vecBytes))
	}
	g.add(g, p, 4*vecBytes)
	g.add(g, left, -4*vecBytes)
	g.jumpIf(g, left, ">", 0, loop)
	g.end()
	return name
}

// peakFMA is the number of fma instructions of a turn of peakLoop: as many chains as a
// latency of four cycles and four units keep busy, or all that there are registers for.
func peakFMA(t target) int { return min(t.registers()-4, 24) }

// peakLoop does independent fma on registers alone.
func peakLoop(f *file) string {
	name := f.lower() + "Peak"
	g := f.begin(name, "(turns int) (fma int)", 16)
	n, loop := g.reg(), g.fresh("loop")
	sums := peakFMA(f.target) / f.width()
	v := g.some(sums)
	x := g.splat()
	for _, d := range append(v, x) {
		g.zero(g, d)
	}
	g.argument(g, n, "turns", 0)
	g.label(loop)
	for _, d := range v {
		g.fma(g, d, x, x)
	}
	g.add(g, n, -1)
	g.jumpIf(g, n, ">", 0, loop)
	g.set(g, n, sums*16)
	g.note("fma of a turn")
	g.returned(g, "fma", 8, n)
	g.end()
	return name
}
