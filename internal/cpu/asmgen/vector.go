package main

import (
	"bytes"
	"fmt"
	"math"
)

// sliceBytes is the size of a slice argument, whose length lies 8 bytes in.
const sliceBytes = 24

// loopKernel is a function that walks slices of equal length, 16 floats a turn.
type loopKernel struct {
	*fn
	ptr  []string // of every slice
	left string   // floats
}

// loop emits a kernel on some slices. set takes the registers and constants; its result is the body.
func (f *file) loop(name, signature string, slices []string, scalars int, set func(g *loopKernel) func()) {
	g := &loopKernel{fn: f.begin(name, signature, len(slices)*sliceBytes+scalars*floatBytes)}
	body := set(g)
	for i, s := range slices {
		r := g.reg()
		g.argument(g.fn, r, s+"_base", i*sliceBytes)
		g.ptr = append(g.ptr, r)
	}
	g.left = g.reg()
	g.argument(g.fn, g.left, slices[0]+"_len", 8)
	g.turns(16, body)
	g.end()
}

// turns repeats body while at least n floats are left.
func (g *loopKernel) turns(n int, body func()) {
	loop, done := g.fresh("loop"), g.fresh("done")
	g.jumpIf(g.fn, g.left, "<", n, done)
	g.label(loop)
	body()
	for _, p := range g.ptr {
		g.add(g.fn, p, n*floatBytes)
	}
	g.add(g.fn, g.left, -n)
	g.jumpIf(g.fn, g.left, ">=", n, loop)
	g.label(done)
}

// in loads the next floats of slice i, out stores them.
func (g *loopKernel) in(i int, d vec)  { g.load(g.fn, d, at(g.ptr[i], 0)) }
func (g *loopKernel) out(i int, s vec) { g.store(g.fn, at(g.ptr[i], 0), s) }

// vectors emits the elementwise kernels; package cpu says what each computes.
func vectors(f *file, table *bytes.Buffer) {
	name := func(field, suffix string) string {
		n := f.lower() + suffix
		fmt.Fprintf(table, "\tk.vector.%s = %s\n", field, n)
		return n
	}
	squares(f, name("squares", "Squares"))
	f.loop(name("scale", "Scale"), "(dst, x, gain []float32, r float32)", []string{"dst", "x", "gain"}, 1, scale)
	f.loop(name("add", "Add"), "(dst, a, b []float32)", []string{"dst", "a", "b"}, 0, binary("ADD"))
	f.loop(name("mul", "Mul"), "(dst, a, b []float32)", []string{"dst", "a", "b"}, 0, binary("MUL"))
	f.loop(name("axpy", "Axpy"), "(sum, x []float32, a float32)", []string{"sum", "x"}, 1, axpy)
	f.loop(name("tap", "Tap"), "(sum, w, u []float32)", []string{"sum", "w", "u"}, 0, tap)
	f.loop(name("rotate", "Rotate"), "(a, b, cos, sin []float32)", []string{"a", "b", "cos", "sin"}, 0, rotate)
	f.loop(name("swiglu", "SwiGLU"), "(dst, g, u []float32)", []string{"dst", "g", "u"}, 0, swiglu)
	f.loop(name("sigmoid", "Sigmoid"), "(dst, x []float32)", []string{"dst", "x"}, 0, sigmoid)
	maximum(f, name("maximum", "Maximum"))
	f.loop(name("expSub", "ExpSub"), "(x []float32, m float32)", []string{"x"}, 1, expSub)
	f.loop(name("merge", "Merge"), "(sum, part []float32, a, b float32)", []string{"sum", "part"}, 2, merge)
	f.loop(name("divide", "Divide"), "(dst, x []float32, d float32)", []string{"dst", "x"}, 1, divide)
}

// squares has 32 sums, in two values.
func squares(f *file, name string) {
	g := &loopKernel{fn: f.begin(name, "(sums *[squareChains]float32, x []float32)", 8+sliceBytes)}
	sums, x := g.reg(), g.reg()
	g.ptr, g.left = []string{x}, g.reg()
	g.argument(g.fn, sums, "sums", 0)
	g.argument(g.fn, x, "x_base", 8)
	g.argument(g.fn, g.left, "x_len", 16)
	s, v := g.some(2), g.some(2)
	for i := range s {
		g.load(g.fn, s[i], at(sums, i*vecBytes))
	}
	g.turns(32, func() {
		for i := range s {
			g.load(g.fn, v[i], at(x, i*vecBytes))
			g.fma(g.fn, s[i], v[i], v[i])
		}
	})
	for i := range s {
		g.store(g.fn, at(sums, i*vecBytes), s[i])
	}
	g.end()
}

func scale(g *loopKernel) func() {
	x, gain, a, b, r := g.vec(), g.vec(), g.vec(), g.vec(), g.splat()
	m := g.masks(a, b)
	g.scalar(g.fn, r, "r", 3*sliceBytes)
	return func() {
		g.in(1, x)
		g.in(2, gain)
		g.op(g.fn, "MUL", x, x, r)
		g.op(g.fn, "MUL", x, x, gain)
		g.flush(g.fn, x, m)
		g.out(0, x)
	}
}

func binary(op string) func(g *loopKernel) func() {
	return func(g *loopKernel) func() {
		x, y, a, b := g.vec(), g.vec(), g.vec(), g.vec()
		m := g.masks(a, b)
		return func() {
			g.in(1, x)
			g.in(2, y)
			g.op(g.fn, op, x, x, y)
			g.flush(g.fn, x, m)
			g.out(0, x)
		}
	}
}

func axpy(g *loopKernel) func() {
	sum, x, a := g.vec(), g.vec(), g.splat()
	g.scalar(g.fn, a, "a", 2*sliceBytes)
	return func() {
		g.in(0, sum)
		g.in(1, x)
		g.fma(g.fn, sum, x, a)
		g.out(0, sum)
	}
}

func tap(g *loopKernel) func() {
	sum, w, u := g.vec(), g.vec(), g.vec()
	return func() {
		g.in(0, sum)
		g.in(1, w)
		g.in(2, u)
		g.fma(g.fn, sum, w, u)
		g.out(0, sum)
	}
}

func rotate(g *loopKernel) func() {
	a, b, x := g.vec(), g.vec(), g.vec()
	y, c, s := g.vec(), g.vec(), g.vec()
	m := g.masks(c, s)
	return func() {
		g.in(0, a)
		g.in(1, b)
		g.in(2, c)
		g.in(3, s)
		g.op(g.fn, "MUL", x, a, c)
		g.fnma(g.fn, x, b, s)
		g.op(g.fn, "MUL", y, b, c)
		g.fma(g.fn, y, a, s)
		g.flush(g.fn, x, m)
		g.flush(g.fn, y, m)
		g.out(0, x)
		g.out(1, y)
	}
}

func merge(g *loopKernel) func() {
	sum, part, a, b := g.vec(), g.vec(), g.splat(), g.splat()
	g.scalar(g.fn, a, "a", 2*sliceBytes)
	g.scalar(g.fn, b, "b", 2*sliceBytes+floatBytes)
	return func() {
		g.in(0, sum)
		g.in(1, part)
		g.op(g.fn, "MUL", part, part, b)
		g.fma(g.fn, part, sum, a)
		g.out(0, part)
	}
}

func divide(g *loopKernel) func() {
	x, a, b, d := g.vec(), g.vec(), g.vec(), g.splat()
	m := g.masks(a, b)
	g.scalar(g.fn, d, "d", 2*sliceBytes)
	return func() {
		g.in(1, x)
		g.op(g.fn, "DIV", x, x, d)
		g.flush(g.fn, x, m)
		g.out(0, x)
	}
}

// maximum starts with the first 16 floats; there are at least so many.
func maximum(f *file, name string) {
	g := &loopKernel{fn: f.begin(name, "(x []float32) (m float32)", sliceBytes+floatBytes)}
	x := g.reg()
	g.ptr, g.left = []string{x}, g.reg()
	g.argument(g.fn, x, "x_base", 0)
	g.argument(g.fn, g.left, "x_len", 8)
	m, v := g.vec(), g.vec()
	g.load(g.fn, m, at(x, 0))
	g.turns(16, func() {
		g.in(0, v)
		g.op(g.fn, "MAX", m, m, v)
	})
	g.largest(g.fn, m, v)
	g.result(g.fn, "m", sliceBytes, m)
	g.end()
}

// exponential holds the constants of exp and the values it works in.
type exponential struct {
	*fn
	low, high, log2e, ln2High, ln2Low, bias, one vec
	poly                                         []vec
	x, n, p, q                                   vec
}

func (f *fn) exponential() *exponential {
	e := &exponential{fn: f}
	bound := f.splats(math.Float32bits(-87), math.Float32bits(88))
	e.low, e.high = bound[0], bound[1]
	e.log2e, e.ln2High, e.ln2Low = f.pooled(1.44269504), f.pooled(-0.693145752), f.pooled(-1.42860677e-6)
	for _, c := range []float32{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5} {
		e.poly = append(e.poly, f.pooled(c))
	}
	e.one = f.pooled(1)
	e.bias = f.pooled(math.Float32frombits(127))
	e.x, e.n, e.p, e.q = f.vec(), f.vec(), f.vec(), f.vec()
	return e
}

// of sets p to exp(x), which it changes.
func (e *exponential) of() {
	x, n, p, q := e.x, e.n, e.p, e.q
	e.clampLow(e.fn, x, x, e.low)
	e.clampHigh(e.fn, x, x, e.high)
	e.op(e.fn, "MUL", n, x, e.log2e)
	e.round(e.fn, n, n)
	e.fma(e.fn, x, n, e.ln2High)
	e.fma(e.fn, x, n, e.ln2Low)
	e.move(e.fn, p, e.poly[0])
	for _, c := range append(e.poly[1:], e.one, e.one) {
		e.move(e.fn, q, c)
		e.fma(e.fn, q, p, x)
		p, q = q, p
	}
	e.toInt(e.fn, n, n)
	e.addInt(e.fn, n, n, e.bias)
	e.shiftLeft(e.fn, n, n, 23)
	e.op(e.fn, "MUL", e.p, p, n)
}

// onePlusExpNeg sets p to 1 + exp(-v) for the next floats v of a slice.
func (e *exponential) onePlusExpNeg(g *loopKernel, slice int) {
	g.in(slice, e.n)
	e.zero(e.fn, e.x)
	e.op(e.fn, "SUB", e.x, e.x, e.n) // 0 - v is -v but for zeros, whose exp is one
	e.of()
	e.op(e.fn, "ADD", e.p, e.p, e.one)
}

func swiglu(g *loopKernel) func() {
	e := g.exponential()
	m := g.masks(e.n, e.q)
	return func() {
		e.onePlusExpNeg(g, 1)
		g.in(1, e.x)
		g.op(g.fn, "DIV", e.x, e.x, e.p)
		g.in(2, e.n)
		g.op(g.fn, "MUL", e.x, e.x, e.n)
		g.flush(g.fn, e.x, m)
		g.out(0, e.x)
	}
}

func sigmoid(g *loopKernel) func() {
	e := g.exponential()
	m := g.masks(e.n, e.q)
	return func() {
		e.onePlusExpNeg(g, 1)
		e.move(e.fn, e.x, e.one)
		g.op(g.fn, "DIV", e.x, e.x, e.p)
		g.flush(g.fn, e.x, m)
		g.out(0, e.x)
	}
}

func expSub(g *loopKernel) func() {
	e := g.exponential()
	m := g.splat()
	g.scalar(g.fn, m, "m", sliceBytes)
	return func() {
		g.in(0, e.x)
		g.op(g.fn, "SUB", e.x, e.x, m)
		e.of()
		g.out(0, e.p)
	}
}
