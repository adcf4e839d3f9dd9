package main

import (
	"fmt"
	"strings"
)

// x86 is AVX-512, or AVX2 with FMA and F16C.
type x86 struct {
	isa  string
	wide bool // AVX-512
}

func newX86(isa string) target { return x86{isa, isa == "AVX512"} }

func (x x86) name() string  { return x.isa }
func (x x86) lower() string { return strings.ToLower(x.isa) }
func (x x86) file() string  { return x.lower() + "_amd64" }

func (x x86) width() int {
	if x.wide {
		return 1
	}
	return 2
}

func (x x86) registers() int {
	if x.wide {
		return 32
	}
	return 16
}

// general leaves out SP, and BP, which the profiler walks.
func (x x86) general() []string {
	return []string{"AX", "BX", "CX", "DX", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}
}

// bytes of a register, and of a half-width source.
func (x x86) bytes() int { return 64 / x.width() }

// r names a register, or a constant in memory where n is below zero.
func (x x86) r(n int) string {
	if n < 0 {
		return fmt.Sprintf("%sConstants<>+%d(SB)", x.lower(), (-1-n)*32)
	}
	if x.wide {
		return fmt.Sprintf("Z%d", n)
	}
	return fmt.Sprintf("Y%d", n)
}

func (m mem) x86() string {
	s := fmt.Sprintf("%s(%s)", m.offset(), m.base)
	if m.index != "" {
		s += fmt.Sprintf("(%s*%d)", m.index, m.scale)
	}
	return s
}

func (x x86) load(f *fn, d vec, m mem) {
	for i, r := range d {
		f.ins("VMOVUPS %s, %s", m.plus(i*x.bytes()).x86(), x.r(r))
	}
}

func (x x86) loadBF16(f *fn, d vec, m mem) {
	for i, r := range d {
		f.ins("VPMOVZXWD %s, %s", m.plus(i*x.bytes()/2).x86(), x.r(r))
		f.ins("VPSLLD $16, %s, %s", x.r(r), x.r(r))
	}
}

func (x x86) loadF16(f *fn, d vec, m mem) {
	for i, r := range d {
		f.ins("VCVTPH2PS %s, %s", m.plus(i*x.bytes()/2).x86(), x.r(r))
	}
}

func (x x86) store(f *fn, m mem, s vec) {
	for i, r := range s {
		f.ins("VMOVUPS %s, %s", x.r(r), m.plus(i*x.bytes()).x86())
	}
}

func (x x86) prefetch(f *fn, m mem) { f.ins("PREFETCHT0 %s", m.x86()) }

func (x x86) broadcast(f *fn, d vec, m mem) { f.ins("VBROADCASTSS %s, %s", m.x86(), x.r(d[0])) }

func (x x86) constant(f *fn, d vec, bits uint32) {
	// AX is loaded anew in every function after its constants.
	f.ins("MOVL $%#x, AX", bits)
	if x.wide {
		f.ins("VPBROADCASTD AX, %s", x.r(d[0]))
		return
	}
	f.ins("VMOVD AX, X%d", d[0])
	f.ins("VBROADCASTSS X%d, %s", d[0], x.r(d[0]))
}

func (x x86) zero(f *fn, d vec) {
	for _, r := range d {
		f.ins("VPXOR%s %s, %s, %s", x.d(), x.r(r), x.r(r), x.r(r))
	}
}

// d is the suffix that bitwise instructions have in AVX-512.
func (x x86) d() string {
	if x.wide {
		return "D"
	}
	return ""
}

func (x x86) move(f *fn, d, s vec) {
	for i := range d {
		f.ins("VMOVUPS %s, %s", x.r(s[i]), x.r(d[i]))
	}
}

// three writes one instruction per register; the assembler wants the operands reversed.
func (x x86) three(f *fn, name string, d, a, b vec) {
	for i := range d {
		f.ins("%s %s, %s, %s", name, x.r(b[i]), x.r(a[i]), x.r(d[i]))
	}
}

func (x x86) op(f *fn, name string, d, a, b vec) { x.three(f, "V"+name+"PS", d, a, b) }
func (x x86) fma(f *fn, sum, a, b vec)           { x.three(f, "VFMADD231PS", sum, a, b) }
func (x x86) fnma(f *fn, sum, a, b vec)          { x.three(f, "VFNMADD231PS", sum, a, b) }
func (x x86) and(f *fn, d, a, b vec)             { x.three(f, "VPAND"+x.d(), d, a, b) }
func (x x86) addInt(f *fn, d, a, b vec)          { x.three(f, "VPADDD", d, a, b) }
func (x x86) clampLow(f *fn, d, v, bound vec)    { x.three(f, "VMAXPS", d, bound, v) }
func (x x86) clampHigh(f *fn, d, v, bound vec)   { x.three(f, "VMINPS", d, bound, v) }

func (x x86) shiftLeft(f *fn, d, s vec, bits int) {
	for i := range d {
		f.ins("VPSLLD $%d, %s, %s", bits, x.r(s[i]), x.r(d[i]))
	}
}

func (x x86) shiftRight(f *fn, d, s vec, bits int) {
	for i := range d {
		f.ins("VPSRLD $%d, %s, %s", bits, x.r(s[i]), x.r(d[i]))
	}
}

func (x x86) toFloat(f *fn, d, s vec) {
	for i := range d {
		f.ins("VCVTDQ2PS %s, %s", x.r(s[i]), x.r(d[i]))
	}
}

func (x x86) mulAdd(f *fn, d, a vec, sum mem, _ vec) {
	for i := range d {
		f.ins("VFMADD213PS %s, %s, %s", sum.plus(i*x.bytes()).x86(), x.r(a[i]), x.r(d[i]))
	}
}

// countTo15 loads the floats 0 to 15, for pick. Only AVX-512 has both.
func (x x86) countTo15(f *fn, d vec) {
	f.counts = true
	f.ins("VMOVUPS %sCounts<>+0(SB), %s", x.lower(), x.r(d[0]))
}

// pick takes the floats of table that the low four bits of every index name.
func (x x86) pick(f *fn, d, index, table vec) {
	f.ins("VPERMPS %s, %s, %s", x.r(table[0]), x.r(index[0]), x.r(d[0]))
}

func (x x86) round(f *fn, d, s vec) {
	name := "VROUNDPS"
	if x.wide {
		name = "VRNDSCALEPS"
	}
	for i := range d {
		f.ins("%s $8, %s, %s", name, x.r(s[i]), x.r(d[i]))
	}
}

func (x x86) toInt(f *fn, d, s vec) {
	for i := range d {
		f.ins("VCVTPS2DQ %s, %s", x.r(s[i]), x.r(d[i]))
	}
}

func (x x86) flush(f *fn, d vec, m flushMasks) {
	if x.wide {
		f.ins("VPTESTNMD %s, %s, K1", x.r(m.exponent[0]), x.r(d[0]))
		f.ins("VPANDD %s, %s, K1, %s", x.r(m.sign[0]), x.r(d[0]), x.r(d[0]))
		return
	}
	// Where the exponent is zero, all bits but the sign are cleared.
	x.three(f, "VPAND", m.a, d, m.exponent)
	x.zero(f, m.b)
	x.three(f, "VPCMPEQD", m.a, m.a, m.b)
	for _, r := range m.a {
		f.ins("VPSRLD $1, %s, %s", x.r(r), x.r(r))
	}
	x.three(f, "VPANDN", d, m.a, d)
}

func (x x86) storeFirst(f *fn, m mem, s vec) { f.ins("VMOVSS X%d, %s", s[0], m.x86()) }

func (x x86) largest(f *fn, d, scratch vec) { x.across(f, "VMAXPS", d, scratch) }

// across combines all lanes by an instruction of two operands, into lane 0.
func (x x86) across(f *fn, name string, d, scratch vec) {
	if x.wide {
		f.ins("VEXTRACTF64X4 $1, Z%d, Y%d", d[0], scratch[0])
		f.ins("%s Y%d, Y%d, Y%d", name, scratch[0], d[0], d[0])
	} else {
		f.ins("%s Y%d, Y%d, Y%d", name, d[1], d[0], d[0])
	}
	f.ins("VEXTRACTF128 $1, Y%d, X%d", d[0], scratch[0])
	f.ins("%s X%d, X%d, X%d", name, scratch[0], d[0], d[0])
	for _, swap := range []int{0x4e, 0xb1} {
		f.ins("VPERMILPS $%#x, X%d, X%d", swap, d[0], scratch[0])
		f.ins("%s X%d, X%d, X%d", name, scratch[0], d[0], d[0])
	}
}

// leave spares the SSE code of Go a penalty.
func (x x86) leave(f *fn) { f.ins("VZEROUPPER") }

func (x x86) pointer(f *fn, d string, m mem)          { f.ins("MOVQ %s, %s", m.x86(), d) }
func (x x86) argument(f *fn, d, name string, off int) { f.ins("MOVQ %s+%d(FP), %s", name, off, d) }
func (x x86) scalar(f *fn, d vec, name string, off int) {
	f.ins("VBROADCASTSS %s+%d(FP), %s", name, off, x.r(d[0]))
}
func (x x86) result(f *fn, name string, off int, s vec) {
	f.ins("VMOVSS X%d, %s+%d(FP)", s[0], name, off)
}
func (x x86) returned(f *fn, name string, off int, s string) {
	f.ins("MOVQ %s, %s+%d(FP)", s, name, off)
}
func (x x86) copy(f *fn, d, s string)         { f.ins("MOVQ %s, %s", s, d) }
func (x x86) set(f *fn, d string, n int)      { f.ins("MOVQ $%d, %s", n, d) }
func (x x86) add(f *fn, d string, n int)      { f.ins("ADDQ $%d, %s", n, d) }
func (x x86) addReg(f *fn, d, s string)       { f.ins("ADDQ %s, %s", s, d) }
func (x x86) subReg(f *fn, d, s string)       { f.ins("SUBQ %s, %s", s, d) }
func (x x86) scaleReg(f *fn, d string, n int) { f.ins("IMUL3Q $%d, %s, %s", n, d, d) }
func (x x86) halve(f *fn, d string)           { f.ins("SHRQ $1, %s", d) }
func (x x86) jump(f *fn, label string)        { f.ins("JMP %s", label) }

func (x x86) jumpIf(f *fn, a, cond string, b any, label string) {
	if n, ok := b.(int); ok {
		f.ins("CMPQ %s, $%d", a, n)
	} else {
		f.ins("CMPQ %s, %s", a, b)
	}
	f.ins("%s %s", map[string]string{"<": "JLT", "<=": "JLE", "==": "JEQ", ">=": "JGE", ">": "JGT"}[cond], label)
}

// panels uses one register for all panels and up to two for their distance.
func (x x86) panels(f *fn, first, stride string, n int) panels {
	thrice := ""
	if n == 4 {
		thrice = f.reg()
		f.ins("LEAQ (%s)(%s*2), %s", stride, stride, thrice)
	}
	places := func(base string) []mem {
		return []mem{{base: base}, {base: base, index: stride, scale: 1}, {base: base, index: stride, scale: 2}, {base: base, index: thrice, scale: 1}}[:n]
	}
	return panels{at: places(first), ahead: places, step: func(bytes int) { x.add(f, first, bytes) }}
}

// inputs uses k as the index of all rows.
func (x x86) inputs(f *fn, rows []string, k string) inputs {
	return inputs{
		next: func(d vec, row, ahead int) {
			x.broadcast(f, d, mem{base: rows[row], index: k, scale: 4, off: 4 * ahead})
		},
		step: func(n int) { x.add(f, k, n) },
	}
}
