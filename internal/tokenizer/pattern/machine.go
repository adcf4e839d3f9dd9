package pattern

import (
	"math/bits"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

// A machine finds matches in one text by backtracking. Expressions such as (a|aa)+b make
// plain backtracking exponential, and a*b|a makes it quadratic, so it counts its steps back.
// Past a few per byte of text it changes to the slow program, in which every failure is
// remembered: whether the branch at i leads to a match from position p depends on i and p
// alone (there are no back references and no look-behind), so no pair is tried twice, and
// the whole text costs at most branches x bytes.

// Steps back a text may cost before failures are remembered. The patterns of known models
// take less than one per byte.
const (
	freeSteps    = 1 << 12
	stepsPerByte = 8
)

type machine struct {
	pattern *Pattern
	prog    *program
	text    string
	stack   []retry
	left    int          // steps back until the slow program
	failed  []uint64     // slow program: bit position x choices + choice
	spans   map[int]span // by instruction: where the latest iTake ran
}

// retry is a decision that can still be changed.
type retry struct {
	pc   int
	pos  int    // iRun: where it stands; else where it was reached
	low  int    // iRun: where it may fall back to
	rest uint64 // iBranch: targets not yet tried
	note bool   // nothing to retry: when reached, the branch has failed
}

type span struct{ from, to int }

func newMachine(p *Pattern, text string) *machine {
	return &machine{pattern: p, prog: &p.fast, text: text, left: freeSteps + stepsPerByte*len(text)}
}

// all is the iterator that Pattern.All promises.
func (m *machine) all(yield func(start, end int) bool) {
	last := -1
	for at := 0; at <= len(m.text); {
		start, end, ok := m.search(at)
		if !ok {
			return
		}
		at = end
		if start == end && end == last {
			if at == len(m.text) {
				return
			}
			at += m.size(at)
			continue
		}
		last = end
		if !yield(start, end) {
			return
		}
	}
}

// search finds the first match that starts at or after at.
func (m *machine) search(at int) (start, end int, ok bool) {
	for {
		end, ok = m.match(at)
		if ok {
			return at, end, true
		}
		if at == len(m.text) {
			return 0, 0, false
		}
		at += m.size(at)
	}
}

// size is the length of the code point at p, which is not the end of the text.
func (m *machine) size(p int) int {
	if m.text[p] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(m.text[p:])
	return n
}

// match tries to match at pos alone.
func (m *machine) match(pos int) (end int, ok bool) {
	start := pos
	m.stack = m.stack[:0]
	for pc := 0; ; {
		i := &m.prog.insts[pc]
		alive := true
		switch i.code {
		case iMatch:
			return pos, true
		case iJump:
			pc = i.to[0]
			continue
		case iBranch:
			pc, alive = m.enter(pc, i, pos)
			if alive {
				continue
			}
		case iRun:
			pos, alive = m.run(pc, i, pos)
		case iTake:
			pos, alive = m.take(pc, i, pos)
		case iSet:
			n := m.next(i.set, pos)
			pos, alive = pos+n, n > 0
		default:
			alive = m.holds(i, pos)
		}
		if alive {
			pc++
			continue
		}
		if pc, pos, ok = m.back(); !ok {
			return 0, false
		}
		if m.left < 0 && m.failed == nil {
			m.slowDown()
			pc, pos = 0, start
		}
	}
}

// next is the length of the code point at pos if it is in set, else 0.
func (m *machine) next(set *ucd.Set, pos int) int {
	if pos == len(m.text) {
		return 0
	}
	c, n := rune(m.text[pos]), 1
	if c >= utf8.RuneSelf {
		c, n = utf8.DecodeRuneInString(m.text[pos:])
	}
	if !set.Has(c) {
		return 0
	}
	return n
}

// holds tests the instructions that take nothing.
func (m *machine) holds(i *inst, pos int) bool {
	switch i.code {
	case iAhead:
		return m.next(i.set, pos) > 0
	case iNot:
		return m.next(i.set, pos) == 0
	case iStart:
		return pos == 0
	case iEnd:
		return pos == len(m.text)
	case iLineStart:
		return pos == 0 || m.text[pos-1] == '\n' && pos < len(m.text)
	}
	return pos == len(m.text) || m.text[pos] == '\n' // iLineEnd
}

// enter picks the first target of a branch.
func (m *machine) enter(pc int, i *inst, pos int) (target int, ok bool) {
	lead := textEnd
	if pos < len(m.text) {
		lead = int(m.text[pos])
	}
	rest := i.lead[lead]
	if rest == 0 {
		return 0, false
	}
	if m.failed != nil {
		if bit := m.bit(i, pos); m.failed[bit>>6]>>(bit&63)&1 != 0 {
			return 0, false
		}
		m.stack = append(m.stack, retry{pc: pc, pos: pos, note: true})
	}
	return m.pick(pc, i, pos, rest), true
}

// pick takes the lowest target of rest and keeps the others for later.
func (m *machine) pick(pc int, i *inst, pos int, rest uint64) int {
	if more := rest & (rest - 1); more != 0 {
		m.stack = append(m.stack, retry{pc: pc, pos: pos, rest: more})
	}
	return i.to[bits.TrailingZeros64(rest)]
}

func (m *machine) bit(i *inst, pos int) int { return pos*m.prog.choices + i.choice }

// run takes as many of a class as it may.
func (m *machine) run(pc int, i *inst, pos int) (end int, ok bool) {
	low := pos
	for n := 0; n != i.max; n++ {
		if n == i.min {
			low = pos
		}
		size := m.next(i.set, pos)
		if size == 0 {
			if n < i.min {
				return 0, false
			}
			break
		}
		pos += size
	}
	if i.min == i.max {
		low = pos
	}
	if low < pos {
		m.stack = append(m.stack, retry{pc: pc, pos: pos, low: low})
	}
	return pos, true
}

// take is run without giving back. A run met before is not walked again.
func (m *machine) take(pc int, i *inst, pos int) (end int, ok bool) {
	known, start := m.spans[pc], pos
	if i.max != unbounded {
		known = span{}
	}
	n := 0
	for ; n != i.max; n++ {
		if n >= i.min && known.from <= pos && pos < known.to {
			pos = known.to
			break
		}
		size := m.next(i.set, pos)
		if size == 0 {
			break
		}
		pos += size
	}
	if n < i.min {
		return 0, false
	}
	if i.max == unbounded {
		if m.spans == nil {
			m.spans = map[int]span{}
		}
		m.spans[pc] = span{start, pos}
	}
	return pos, true
}

// back goes to the latest decision that can be changed.
func (m *machine) back() (pc, pos int, ok bool) {
	for len(m.stack) > 0 {
		m.left--
		r := &m.stack[len(m.stack)-1]
		i := &m.prog.insts[r.pc]
		switch {
		case r.note:
			bit := m.bit(i, r.pos)
			m.failed[bit>>6] |= 1 << (bit & 63)
			m.stack = m.stack[:len(m.stack)-1]
		case i.code == iRun:
			_, size := utf8.DecodeLastRuneInString(m.text[:r.pos])
			r.pos -= size
			pc, pos = r.pc+1, r.pos
			if r.pos == r.low {
				m.stack = m.stack[:len(m.stack)-1]
			}
			return pc, pos, true
		default:
			from := *r
			m.stack = m.stack[:len(m.stack)-1]
			return m.pick(from.pc, i, from.pos, from.rest), from.pos, true
		}
	}
	return 0, 0, false
}

// slowDown changes to the slow program, for the rest of this text.
func (m *machine) slowDown() {
	m.prog = &m.pattern.slow
	m.failed = make([]uint64, ((len(m.text)+1)*m.prog.choices+63)/64+1)
	m.stack = m.stack[:0]
	m.spans = nil
}
