package main

import "fmt"

// neon is the vector unit that every arm64 has. What the Go assembler cannot spell is a WORD.
type neon struct{}

func newNEON() target { return neon{} }

func (neon) name() string   { return "NEON" }
func (neon) lower() string  { return "neon" }
func (neon) file() string   { return "neon_arm64" }
func (neon) width() int     { return 4 }
func (neon) registers() int { return 32 }

// general leaves out R16 to R18 (linker, platform), R19 (ours, for constants) and R26 up
// (context, assembler, g, frame, link).
func (neon) general() []string {
	var regs []string
	for i := range 26 {
		if i < 16 || i > 19 {
			regs = append(regs, fmt.Sprintf("R%d", i))
		}
	}
	return regs
}

func (m mem) arm64() string {
	if m.index != "" {
		panic("asmgen: indexed address on arm64")
	}
	return fmt.Sprintf("%s(%s)", m.offset(), m.base)
}

// word writes an instruction by its encoding: fields rd, rn and rm are registers.
func (neon) word(f *fn, name string, code uint32, rd, rn, rm int) {
	f.ins("WORD $%#08x // %s v%d, v%d, v%d", code|uint32(rm)<<16|uint32(rn)<<5|uint32(rd), name, rd, rn, rm)
}

func (n neon) load(f *fn, d vec, m mem) {
	f.ins("FLDPQ %s, (F%d, F%d)", m.arm64(), d[0], d[1])
	f.ins("FLDPQ %s, (F%d, F%d)", m.plus(32).arm64(), d[2], d[3])
}

func (n neon) loadBF16(f *fn, d vec, m mem) { n.widen(f, d, m, "shll", 0x2e613800) }
func (n neon) loadF16(f *fn, d vec, m mem)  { n.widen(f, d, m, "fcvtl", 0x0e217800) }

// widen loads 16 halves and widens each quarter; bit 30 of code selects the upper ones.
func (n neon) widen(f *fn, d vec, m mem, name string, code uint32) {
	f.ins("FLDPQ %s, (F%d, F%d)", m.arm64(), d[0], d[2])
	for _, half := range []int{0, 2} {
		n.word(f, name+"2", code|1<<30, d[half+1], d[half], 0)
		n.word(f, name, code, d[half], d[half], 0)
	}
}

func (n neon) store(f *fn, m mem, s vec) {
	f.ins("FSTPQ (F%d, F%d), %s", s[0], s[1], m.arm64())
	f.ins("FSTPQ (F%d, F%d), %s", s[2], s[3], m.plus(32).arm64())
}

func (n neon) prefetch(f *fn, m mem) { f.ins("PRFM %s, PLDL1KEEP", m.arm64()) }

func (n neon) broadcast(f *fn, d vec, m mem) {
	if m.offset() != "" {
		f.ins("FMOVS %s, F%d", m.arm64(), d[0])
		f.ins("VDUP V%d.S[0], V%d.S4", d[0], d[0])
		return
	}
	f.ins("VLD1R (%s), [V%d.S4]", m.base, d[0])
}

func (n neon) constant(f *fn, d vec, bits uint32) {
	f.ins("MOVD $%#x, R19", bits)
	f.ins("VDUP R19, V%d.S4", d[0])
}

func (n neon) zero(f *fn, d vec) {
	for _, r := range d {
		f.ins("VEOR V%d.B16, V%d.B16, V%d.B16", r, r, r)
	}
}

func (n neon) move(f *fn, d, s vec) {
	for i := range d {
		f.ins("VORR V%d.B16, V%d.B16, V%d.B16", s[i], s[i], d[i])
	}
}

// three writes a WORD per register.
func (n neon) three(f *fn, name string, code uint32, d, a, b vec) {
	for i := range d {
		n.word(f, name, code, d[i], a[i], b[i])
	}
}

func (n neon) op(f *fn, name string, d, a, b vec) {
	codes := map[string]uint32{"ADD": 0x4e20d400, "SUB": 0x4ea0d400, "MUL": 0x6e20dc00, "DIV": 0x6e20fc00, "MAX": 0x4e20f400}
	n.three(f, "f"+name, codes[name], d, a, b)
}

func (n neon) fma(f *fn, sum, a, b vec) {
	for i := range sum {
		f.ins("VFMLA V%d.S4, V%d.S4, V%d.S4", b[i], a[i], sum[i])
	}
}

func (n neon) fnma(f *fn, sum, a, b vec) {
	for i := range sum {
		f.ins("VFMLS V%d.S4, V%d.S4, V%d.S4", b[i], a[i], sum[i])
	}
}

func (n neon) and(f *fn, d, a, b vec) {
	for i := range d {
		f.ins("VAND V%d.B16, V%d.B16, V%d.B16", b[i], a[i], d[i])
	}
}

func (n neon) addInt(f *fn, d, a, b vec) {
	for i := range d {
		f.ins("VADD V%d.S4, V%d.S4, V%d.S4", b[i], a[i], d[i])
	}
}

func (n neon) shiftLeft(f *fn, d, s vec, bits int) {
	for i := range d {
		f.ins("VSHL $%d, V%d.S4, V%d.S4", bits, s[i], d[i])
	}
}

func (n neon) shiftRight(f *fn, d, s vec, bits int) {
	for i := range d {
		f.ins("VUSHR $%d, V%d.S4, V%d.S4", bits, s[i], d[i])
	}
}

// mulAdd has no operand in memory: each quarter comes through spare.
func (n neon) mulAdd(f *fn, d, a vec, sum mem, spare vec) {
	for i := range d {
		f.ins("FMOVQ %s, F%d", sum.plus(i*16).arm64(), spare[0])
		f.ins("VFMLA V%d.S4, V%d.S4, V%d.S4", a[i], d[i], spare[0])
		f.ins("VORR V%d.B16, V%d.B16, V%d.B16", spare[0], spare[0], d[i])
	}
}

func (n neon) two(f *fn, name string, code uint32, d, s vec) {
	for i := range d {
		n.word(f, name, code, d[i], s[i], 0)
	}
}

func (n neon) round(f *fn, d, s vec)            { n.two(f, "frintn", 0x4e218800, d, s) }
func (n neon) toFloat(f *fn, d, s vec)          { n.two(f, "ucvtf", 0x6e21d800, d, s) }
func (n neon) toInt(f *fn, d, s vec)            { n.two(f, "fcvtns", 0x4e21a800, d, s) }
func (n neon) clampLow(f *fn, d, x, bound vec)  { n.three(f, "fmax", 0x4e20f400, d, x, bound) }
func (n neon) clampHigh(f *fn, d, x, bound vec) { n.three(f, "fmin", 0x4ea0f400, d, x, bound) }

// flush clears all bits but the sign where the exponent is zero.
func (n neon) flush(f *fn, d vec, m flushMasks) {
	n.and(f, m.a, d, m.exponent)
	n.two(f, "cmeq0", 0x4ea09800, m.a, m.a)
	for _, r := range m.a {
		f.ins("VUSHR $1, V%d.S4, V%d.S4", r, r)
	}
	n.three(f, "bic", 0x4e601c00, d, d, m.a)
}

func (n neon) storeFirst(f *fn, m mem, s vec) { f.ins("FMOVS F%d, %s", s[0], m.arm64()) }

func (n neon) largest(f *fn, d, _ vec) {
	for _, r := range d[1:] {
		n.word(f, "fmax", 0x4e20f400, d[0], d[0], r)
	}
	n.word(f, "fmaxv", 0x6e30f800, d[0], d[0], 0)
}

func (neon) leave(*fn) {}

func (n neon) pointer(f *fn, d string, m mem)          { f.ins("MOVD %s, %s", m.arm64(), d) }
func (n neon) argument(f *fn, d, name string, off int) { f.ins("MOVD %s+%d(FP), %s", name, off, d) }
func (n neon) scalar(f *fn, d vec, name string, off int) {
	f.ins("FMOVS %s+%d(FP), F%d", name, off, d[0])
	f.ins("VDUP V%d.S[0], V%d.S4", d[0], d[0])
}
func (n neon) result(f *fn, name string, off int, s vec) {
	f.ins("FMOVS F%d, %s+%d(FP)", s[0], name, off)
}
func (n neon) returned(f *fn, name string, off int, s string) {
	f.ins("MOVD %s, %s+%d(FP)", s, name, off)
}
func (n neon) copy(f *fn, d, s string)    { f.ins("MOVD %s, %s", s, d) }
func (n neon) set(f *fn, d string, v int) { f.ins("MOVD $%d, %s", v, d) }
func (n neon) add(f *fn, d string, v int) { f.ins("ADD $%d, %s", v, d) }
func (n neon) addReg(f *fn, d, s string)  { f.ins("ADD %s, %s", s, d) }
func (n neon) subReg(f *fn, d, s string)  { f.ins("SUB %s, %s", s, d) }
func (n neon) halve(f *fn, d string)      { f.ins("LSR $1, %s", d) }
func (n neon) jump(f *fn, label string)   { f.ins("B %s", label) }

func (n neon) scaleReg(f *fn, d string, v int) {
	f.ins("MOVD $%d, R19", v)
	f.ins("MUL R19, %s, %s", d, d)
}

func (n neon) jumpIf(f *fn, a, cond string, b any, label string) {
	if v, ok := b.(int); ok {
		f.ins("CMP $%d, %s", v, a)
	} else {
		f.ins("CMP %s, %s", b, a)
	}
	f.ins("%s %s", map[string]string{"<": "BLT", "<=": "BLE", "==": "BEQ", ">=": "BGE", ">": "BGT"}[cond], label)
}

// panels uses a pointer for each panel.
func (n neon) panels(f *fn, first, stride string, count int) panels {
	regs := []string{first}
	for range count - 1 {
		r := f.reg()
		f.ins("ADD %s, %s, %s", stride, regs[len(regs)-1], r)
		regs = append(regs, r)
	}
	p := panels{step: func(bytes int) {
		for _, r := range regs {
			n.add(f, r, bytes)
		}
	}}
	for _, r := range regs {
		p.at = append(p.at, at(r, 0))
	}
	return p
}

// inputs moves the row pointers along as they are read.
func (n neon) inputs(f *fn, rows []string, k string) inputs {
	return inputs{
		next: func(d vec, row, _ int) { f.ins("VLD1R.P 4(%s), [V%d.S4]", rows[row], d[0]) },
		step: func(count int) { n.add(f, k, count) },
	}
}
