package main

import (
	"bytes"
	"fmt"
)

// pageKeys and maxGroup: see package cpu.
const (
	pageKeys = 256
	maxGroup = 4
)

// pageFormat is how K and V are stored.
type pageFormat struct {
	name  string
	bytes int
	load  func(f *fn, d vec, m mem)
}

func pageFormats() []pageFormat {
	return []pageFormat{
		{"BF16", 2, func(f *fn, d vec, m mem) { f.loadBF16(f, d, m) }},
		{"F32", 4, func(f *fn, d vec, m mem) { f.load(f, d, m) }},
	}
}

// blocks is how many values of 16 keys, or of 16 elements, are at hand for every query: up to
// four, as registers allow, since one alone would wait for itself.
func blocks(t target, queries int) int {
	const others = 2 // an input, and the scale
	for n := 4; n > 1; n /= 2 {
		if (queries+1)*n*t.width()+queries+others <= t.registers() {
			return n
		}
	}
	return 1
}

// attentions emits the attention kernels and their table.
func attentions(f *file, table *bytes.Buffer) {
	for i, format := range pageFormats() {
		for queries := 1; queries <= maxGroup; queries++ {
			fmt.Fprintf(table, "\tk.attention[%d].scores[%d] = %s\n", i, queries, scores(f, format, queries))
			fmt.Fprintf(table, "\tk.attention[%d].values[%d] = %s\n", i, queries, values(f, format, queries))
		}
	}
}

// attentionKernel holds the registers that both kernels have.
type attentionKernel struct {
	*fn
	queries int
	format  pageFormat
	args    string
}

func newAttention(f *file, name string, format pageFormat, queries int) *attentionKernel {
	g := &attentionKernel{fn: f.begin(name, "(a *attention)", 8), queries: queries, format: format}
	g.args = g.reg()
	g.argument(g.fn, g.args, "a", 0)
	return g
}

func (g *attentionKernel) field(name string) string {
	r := g.reg()
	g.pointer(g.fn, r, field(g.args, "attention_"+name))
	return r
}

// dim is a field in floats, and in bytes of floats.
func (g *attentionKernel) dim(name string) (floats, bytes string) {
	floats, bytes = g.field(name), g.reg()
	g.copy(g.fn, bytes, floats)
	g.scaleReg(g.fn, bytes, floatBytes)
	return floats, bytes
}

// spread sets each of rows to the one before and a distance.
func (g *attentionKernel) spread(rows []string, distance string) {
	for i := range rows[1:] {
		g.copy(g.fn, rows[i+1], rows[i])
		g.addReg(g.fn, rows[i+1], distance)
	}
}

// scores has a key in every lane: a sum goes through the elements of a query in order.
func scores(f *file, format pageFormat, queries int) string {
	name := fmt.Sprintf("%sScores%sQ%d", f.lower(), format.name, queries)
	g := newAttention(f, name, format, queries)
	n := blocks(f.target, queries)
	key, q, scale := g.some(n), g.splat(), g.splat()
	sums := make([][]vec, queries)
	for i := range sums {
		sums[i] = g.some(n)
	}
	page, s, keys := g.field("k"), g.field("s"), g.field("keys")
	dim, dimBytes := g.dim("dim")
	k, d := g.reg(), g.reg()
	rows := g.takes(queries)
	g.broadcast(g.fn, scale, field(g.args, "attention_scale"))
	block, element := g.fresh("block"), g.fresh("element")

	g.label(block)
	for i := range sums {
		for _, v := range sums[i] {
			g.zero(g.fn, v)
		}
	}
	g.pointer(g.fn, rows[0], field(g.args, "attention_q"))
	g.spread(rows, dimBytes)
	g.set(g.fn, d, 0)
	g.copy(g.fn, k, page)
	in := g.inputs(g.fn, rows, d)
	g.label(element)
	for b, v := range key {
		g.format.load(g.fn, v, at(k, b*16*format.bytes))
	}
	for i := range sums {
		in.next(q, i, 0)
		for b, v := range sums[i] {
			g.fma(g.fn, v, key[b], q)
		}
	}
	in.step(1)
	g.add(g.fn, k, pageKeys*format.bytes)
	g.jumpIf(g.fn, d, "<", dim, element)
	for i := range sums {
		for b, v := range sums[i] {
			g.op(g.fn, "MUL", v, v, scale)
			g.store(g.fn, at(s, b*vecBytes), v)
		}
		g.add(g.fn, s, pageKeys*floatBytes)
	}
	g.add(g.fn, s, n*vecBytes-queries*pageKeys*floatBytes)
	g.add(g.fn, page, n*16*format.bytes)
	g.add(g.fn, keys, -16*n)
	g.jumpIf(g.fn, keys, ">", 0, block)
	g.end()
	return name
}

// values has an element of V in every lane: a sum goes through the keys in order. The sums of
// the weights are made beside it, again for every block of elements.
func values(f *file, format pageFormat, queries int) string {
	name := fmt.Sprintf("%sValues%sQ%d", f.lower(), format.name, queries)
	g := newAttention(f, name, format, queries)
	most := blocks(f.target, queries)
	v := &valueKernel{attentionKernel: g, vecs: g.some(most), weight: g.splat()}
	v.page, v.o, v.keys = g.field("v"), g.field("o"), g.field("keys")
	v.width, v.widthBytes = g.dim("width")
	v.left, v.key, v.v = g.reg(), g.reg(), g.reg()
	v.rows = g.takes(queries)
	for range queries {
		v.total = append(v.total, g.splat()[:1])
		v.sums = append(v.sums, g.some(most))
	}
	g.copy(g.fn, v.left, v.width)
	g.scaleReg(g.fn, v.width, format.bytes) // from key to key
	for n := most; n > 0; n /= 2 {
		v.block(n)
	}
	for i := range queries {
		g.pointer(g.fn, v.key, field(g.args, "attention_l"))
		g.storeFirst(g.fn, at(v.key, i*floatBytes), v.total[i])
	}
	g.end()
	return name
}

type valueKernel struct {
	*attentionKernel
	vecs              []vec
	weight            vec
	total             []vec   // sum of weights, one register a query
	sums              [][]vec // [query][block]
	page, o, keys     string
	width, widthBytes string
	left, key, v      string
	rows              []string // weights of every query
}

// block handles elements n·16 at a time, while so many are left.
func (g *valueKernel) block(n int) {
	block, key, done := g.fresh("block"), g.fresh("key"), g.fresh("done")
	g.label(block)
	g.jumpIf(g.fn, g.left, "<", 16*n, done)
	for i := range g.sums {
		g.zero(g.fn, g.total[i])
		for _, v := range g.sums[i][:n] {
			g.zero(g.fn, v)
		}
	}
	g.pointer(g.fn, g.rows[0], field(g.args, "attention_s"))
	for i := range g.rows[1:] {
		g.copy(g.fn, g.rows[i+1], g.rows[i])
		g.add(g.fn, g.rows[i+1], pageKeys*floatBytes)
	}
	g.set(g.fn, g.key, 0)
	g.copy(g.fn, g.v, g.page)
	in := g.inputs(g.fn, g.rows, g.key)
	g.label(key)
	for b, v := range g.vecs[:n] {
		g.format.load(g.fn, v, at(g.v, b*16*g.format.bytes))
	}
	for i := range g.sums {
		in.next(g.weight, i, 0)
		g.op(g.fn, "ADD", g.total[i], g.total[i], g.weight)
		for b, v := range g.sums[i][:n] {
			g.fma(g.fn, v, g.vecs[b], g.weight)
		}
	}
	in.step(1)
	g.addReg(g.fn, g.v, g.width)
	g.jumpIf(g.fn, g.key, "<", g.keys, key)
	g.copy(g.fn, g.v, g.o)
	for i := range g.sums {
		for b, v := range g.sums[i][:n] {
			g.store(g.fn, at(g.v, b*vecBytes), v)
		}
		g.addReg(g.fn, g.v, g.widthBytes)
	}
	g.add(g.fn, g.o, n*vecBytes)
	g.add(g.fn, g.page, n*16*g.format.bytes)
	g.add(g.fn, g.left, -16*n)
	g.jump(g.fn, block)
	g.label(done)
}
