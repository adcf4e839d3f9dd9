package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// vec is a value of 16 floats: the numbers of the registers that hold it, low floats
// first. A broadcast names one register several times.
type vec []int

// mem is an address: base + index·scale + off, and the offset of a Go field.
type mem struct {
	base, index string
	scale, off  int
	field       string // of go_asm.h: struct_field
}

func at(base string, off int) mem { return mem{base: base, off: off} }

func field(base, name string) mem { return mem{base: base, field: name} }

// offset is the constant part of an address.
func (m mem) offset() string {
	switch {
	case m.field != "":
		return fmt.Sprintf("(%s+%d)", m.field, m.off)
	case m.off != 0:
		return fmt.Sprint(m.off)
	}
	return ""
}

// plus is the address n bytes further.
func (m mem) plus(n int) mem {
	m.off += n
	return m
}

// target is an instruction set. Destinations come first, and may be operands.
type target interface {
	name() string // as package cpu names it
	file() string
	lower() string
	width() int        // registers of a vec
	registers() int    // vector registers
	general() []string // general registers that a function may use

	// on values of 16 floats
	load(f *fn, d vec, m mem)
	loadBF16(f *fn, d vec, m mem)
	loadF16(f *fn, d vec, m mem)
	store(f *fn, m mem, s vec)
	prefetch(f *fn, m mem)
	broadcast(f *fn, d vec, m mem) // of a float in memory
	constant(f *fn, d vec, bits uint32)
	zero(f *fn, d vec)
	move(f *fn, d, s vec)
	op(f *fn, name string, d, a, b vec)
	fma(f *fn, sum, a, b vec)                   // sum + a·b
	fnma(f *fn, sum, a, b vec)                  // sum - a·b
	mulAdd(f *fn, d, a vec, sum mem, spare vec) // d·a + sum; spare where registers are many
	and(f *fn, d, a, b vec)
	shiftLeft(f *fn, d, s vec, bits int) // of 32-bit lanes
	shiftRight(f *fn, d, s vec, bits int)
	addInt(f *fn, d, a, b vec)
	round(f *fn, d, s vec)             // to the nearest integer, ties to even
	toInt(f *fn, d, s vec)             // of an integral float
	toFloat(f *fn, d, s vec)           // of an integer below 2^24
	clampLow(f *fn, d, x, bound vec)   // the larger; NaN where x is one
	clampHigh(f *fn, d, x, bound vec)  // the smaller; NaN where x is one
	flush(f *fn, d vec, m flushMasks)  // subnormals to zeros
	storeFirst(f *fn, m mem, s vec)    // float 0
	largest(f *fn, d vec, scratch vec) // of all floats, into float 0

	// products of codes, and what rounds inputs to them
	dotFormat(f *file, bits int) dotFormat
	signedToFloat(f *fn, d, s vec)
	maxInt(f *fn, d, a, b vec)            // of unsigned numbers
	largestInt(f *fn, d vec, scratch vec) // of all of them, into lane 0

	leave(f *fn) // before the return

	// on general registers
	pointer(f *fn, d string, m mem) // loads 8 bytes
	argument(f *fn, d, name string, off int)
	scalar(f *fn, d vec, name string, off int) // broadcasts a float argument
	result(f *fn, name string, off int, s vec) // float 0
	returned(f *fn, name string, off int, s string)
	copy(f *fn, d, s string)
	set(f *fn, d string, n int)
	add(f *fn, d string, n int)
	addReg(f *fn, d, s string)
	subReg(f *fn, d, s string)
	scaleReg(f *fn, d string, n int)
	halve(f *fn, d string)
	jump(f *fn, label string)
	jumpIf(f *fn, a, cond string, b any, label string) // cond of signed numbers: < <= == >= >; b a register or an int

	// addresses of matmul
	panels(f *fn, first, stride string, n int) panels
	inputs(f *fn, rows []string, k string) inputs
}

// panels walks the weights of some panels.
type panels struct {
	at    []mem
	step  func(bytes int)
	ahead func(base string) []mem // the same places from another base; nil where loads need no announcing
}

// inputs broadcasts the inputs of rows, in ascending k.
type inputs struct {
	next func(d vec, row, ahead int) // of input k+ahead
	step func(n int)                 // k += n
}

// flushMasks are the constants of a flush, and registers to work in.
type flushMasks struct{ exponent, sign, a, b vec }

// file collects the functions of one target.
type file struct {
	target
	text, stubs strings.Builder
	constants   []uint32 // in memory, see pooled
	counts      bool     // 0 to 15 are in memory too
}

// fn is a function being written.
type fn struct {
	*file
	vecs   int
	regs   []string
	labels int
	symbol string
}

// begin starts a function; signature is its parameters as Go code, argBytes their size on the stack.
func (f *file) begin(name, signature string, argBytes int) *fn {
	fmt.Fprintf(&f.stubs, "//go:noescape\nfunc %s%s\n\n", name, signature)
	fmt.Fprintf(&f.text, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, argBytes)
	return &fn{file: f, regs: f.general(), symbol: name}
}

func (f *fn) end() {
	f.leave(f)
	f.ins("RET")
}

// ins writes one instruction.
func (f *fn) ins(format string, args ...any) { fmt.Fprintf(&f.text, "\t"+format+"\n", args...) }

// note writes a comment line.
func (f *fn) note(format string, args ...any) { fmt.Fprintf(&f.text, "\t// "+format+"\n", args...) }

func (f *fn) label(name string) { fmt.Fprintf(&f.text, "\n%s:\n", name) }

// fresh makes a label of its own.
func (f *fn) fresh(name string) string {
	f.labels++
	return fmt.Sprintf("%s%d", name, f.labels)
}

// vec takes registers for 16 floats.
func (f *fn) vec() vec {
	v := make(vec, f.width())
	for i := range v {
		v[i] = f.vecs
		f.vecs++
	}
	return f.checked(v)
}

// some takes n of them.
func (f *fn) some(n int) []vec {
	vs := make([]vec, n)
	for i := range vs {
		vs[i] = f.vec()
	}
	return vs
}

// splat takes one register that stands for 16 equal floats.
func (f *fn) splat() vec {
	v := make(vec, f.width())
	for i := range v {
		v[i] = f.vecs
	}
	f.vecs++
	return f.checked(v)
}

func (f *fn) checked(v vec) vec {
	if f.vecs > f.registers() {
		panic(fmt.Sprintf("asmgen: %s needs more than %d vector registers", f.symbol, f.registers()))
	}
	return v
}

// splats takes a register for each constant and sets it.
func (f *fn) splats(bits ...uint32) []vec {
	vs := make([]vec, len(bits))
	for i, b := range bits {
		vs[i] = f.splat()
		f.constant(f, vs[i], b)
	}
	return vs
}

// reg takes a general register.
func (f *fn) reg() string {
	if len(f.regs) == 0 {
		panic(fmt.Sprintf("asmgen: %s needs more general registers", f.symbol))
	}
	r := f.regs[0]
	f.regs = f.regs[1:]
	return r
}

// takes takes n of them.
func (f *fn) takes(n int) []string {
	regs := make([]string, n)
	for i := range regs {
		regs[i] = f.reg()
	}
	return regs
}

// masks prepares flush, which may work in a and b.
func (f *fn) masks(a, b vec) flushMasks {
	m := flushMasks{exponent: f.splats(0x7f800000)[0], a: a, b: b}
	if f.name() == "AVX512" {
		m.sign = f.splats(0x80000000)[0]
	}
	return m
}

// pooled is a constant that is only read by op, fma, move and addInt as their last operand: in
// a register, or in memory where registers are few.
func (f *fn) pooled(c float32) vec { return f.pooledBits(math.Float32bits(c)) }

func (f *fn) pooledBits(bits uint32) vec {
	if f.registers() >= 32 {
		return f.splats(bits)[0]
	}
	i := slices.Index(f.constants, bits)
	if i < 0 {
		i = len(f.constants)
		f.constants = append(f.constants, bits)
	}
	v := make(vec, f.width())
	for j := range v {
		v[j] = -1 - i
	}
	return v
}
