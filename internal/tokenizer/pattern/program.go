package pattern

import (
	"fmt"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

// maxProgram bounds what repeats may unroll to. The largest pattern in use needs about 60.
const maxProgram = 1024

type code uint8

const (
	iSet       code = iota // take one code point of set
	iRun                   // take min to max of set, give back one by one
	iTake                  // take min to max of set, never give back
	iAhead                 // one of set follows
	iNot                   // none of set follows
	iStart                 // the text starts here
	iEnd                   // the text ends here
	iLineStart             // a line starts here
	iLineEnd               // a line ends here
	iBranch                // go on at one of to, the earlier the better
	iJump                  // go on at to[0]
	iMatch
)

type inst struct {
	code     code
	set      *ucd.Set
	min, max int // of iRun and iTake; max may be unbounded
	to       []int
	lead     *[leads]uint64 // iBranch: bit i is set when to[i] can begin with this byte
	choice   int            // iBranch: its number in the program
}

// leads is what a branch can look at: every first byte of a code point, and the end of the text.
const (
	leads   = 257
	textEnd = 256
)

// maxTargets is the widest branch: lead has a bit for each.
const maxTargets = 64

type program struct {
	insts   []inst
	choices int
}

// build makes both programs of an expression.
func build(root *node) (*Pattern, error) {
	p := &Pattern{}
	sets := map[*node]*ucd.Set{} // an unrolled node and both programs share one
	for _, x := range []struct {
		to   *program
		runs bool
	}{{&p.fast, true}, {&p.slow, false}} {
		c := compiler{program: x.to, runs: x.runs, sets: sets}
		c.emit(root)
		c.add(inst{code: iMatch})
		if c.full {
			return nil, fmt.Errorf("pattern unrolls to more than %d steps", maxProgram)
		}
	}
	return p, nil
}

type compiler struct {
	*program
	runs bool // repeats of one class become iRun
	full bool
	sets map[*node]*ucd.Set
}

// add appends an instruction and tells where it is.
func (c *compiler) add(i inst) int {
	if len(c.insts) == maxProgram {
		c.full = true
		return 0
	}
	c.insts = append(c.insts, i)
	return len(c.insts) - 1
}

func (c *compiler) set(n *node) *ucd.Set {
	s, ok := c.sets[n]
	if !ok {
		s = ucd.NewSet(n.set)
		c.sets[n] = s
	}
	return s
}

// emit appends the instructions of n; they go on behind their last one.
func (c *compiler) emit(n *node) {
	if c.full {
		return
	}
	switch n.op {
	case opSet:
		c.add(inst{code: iSet, set: c.set(n)})
	case opAhead:
		c.add(inst{code: iAhead, set: c.set(n)})
	case opNot:
		c.add(inst{code: iNot, set: c.set(n)})
	case opStart:
		c.add(inst{code: iStart})
	case opEnd:
		c.add(inst{code: iEnd})
	case opLineStart:
		c.add(inst{code: iLineStart})
	case opLineEnd:
		c.add(inst{code: iLineEnd})
	case opCat:
		for _, s := range n.subs {
			c.emit(s)
		}
	case opAlt:
		c.alternatives(n)
	case opRepeat:
		c.repeat(n)
	}
}

func (c *compiler) alternatives(n *node) {
	if len(n.subs) > maxTargets { // too wide for one branch: a chain of them
		head := &node{op: opAlt, subs: n.subs[:maxTargets-1]}
		tail := &node{op: opAlt, subs: n.subs[maxTargets-1:]}
		n = &node{op: opAlt, subs: append(head.subs[:maxTargets-1:maxTargets-1], tail)}
	}
	at := c.branch()
	var targets, ends []int
	lead := &[leads]uint64{}
	for i, s := range n.subs {
		targets = append(targets, len(c.insts))
		starts(s).mark(lead, i)
		c.emit(s)
		ends = append(ends, c.add(inst{code: iJump}))
	}
	c.patch(at, targets, lead)
	for _, e := range ends {
		c.patch(e, []int{len(c.insts)}, nil)
	}
}

func (c *compiler) branch() int {
	at := c.add(inst{code: iBranch, choice: c.choices})
	c.choices++
	return at
}

func (c *compiler) patch(at int, to []int, lead *[leads]uint64) {
	if !c.full {
		c.insts[at].to, c.insts[at].lead = to, lead
	}
}

func (c *compiler) repeat(n *node) {
	sub := n.subs[0]
	if sub.op == opSet && (n.mode == possessive || c.runs && n.mode == greedy) {
		kind := iRun
		if n.mode == possessive {
			kind = iTake
		}
		c.add(inst{code: kind, set: c.set(sub), min: n.min, max: n.max})
		return
	}
	for range n.min {
		c.emit(sub)
	}
	if n.max == unbounded {
		at := c.branch()
		c.emit(sub)
		c.add(inst{code: iJump, to: []int{at}})
		c.either(at, n, len(c.insts))
		return
	}
	var forks []int
	for range n.max - n.min {
		forks = append(forks, c.branch())
		c.emit(sub)
		if c.full {
			return
		}
	}
	for _, at := range forks {
		c.either(at, n, len(c.insts))
	}
}

// either makes the branch at `at` choose between the repeated part behind it and exit.
func (c *compiler) either(at int, n *node, exit int) {
	lead := &[leads]uint64{}
	body, out := 0, 1
	to := []int{at + 1, exit}
	if n.mode == lazy {
		body, out = 1, 0
		to = []int{exit, at + 1}
	}
	starts(n.subs[0]).mark(lead, body)
	anything.mark(lead, out)
	c.patch(at, to, lead)
}

// first is what a node can begin with.
type first struct {
	lead  [leads]bool
	empty bool // it may match nothing: what follows decides
}

var anything = first{empty: true}

// mark sets bit i of every lead that f allows.
func (f first) mark(lead *[leads]uint64, i int) {
	for b := range lead {
		if f.empty || f.lead[b] {
			lead[b] |= 1 << i
		}
	}
}

func starts(n *node) first {
	switch n.op {
	case opSet:
		return startsSet(n.set)
	case opCat:
		f := anything
		for _, s := range n.subs {
			g := starts(s)
			f.join(g)
			if f.empty = g.empty; !f.empty {
				break
			}
		}
		return f
	case opAlt:
		var f first
		for _, s := range n.subs {
			g := starts(s)
			f.join(g)
			f.empty = f.empty || g.empty
		}
		return f
	case opRepeat:
		f := starts(n.subs[0])
		f.empty = f.empty || n.min == 0
		return f
	}
	return anything
}

func (f *first) join(g first) {
	for b := range f.lead {
		f.lead[b] = f.lead[b] || g.lead[b]
	}
}

func startsSet(set ucd.Ranges) first {
	var f first
	for _, r := range set {
		for c := r.Lo; c <= min(r.Hi, utf8.RuneSelf-1); c++ {
			f.lead[c] = true
		}
		for lo := max(r.Lo, utf8.RuneSelf); lo <= r.Hi; { // one step per lead byte
			b, next := leadByte(lo)
			f.lead[b] = true
			lo = next
		}
	}
	return f
}

// leadByte is the first UTF-8 byte of c, and the first code point with another one.
func leadByte(c rune) (b byte, next rune) {
	switch {
	case c < 0x800:
		return 0xC0 | byte(c>>6), (c>>6 + 1) << 6
	case c < 0x10000:
		return 0xE0 | byte(c>>12), (c>>12 + 1) << 12
	}
	return 0xF0 | byte(c>>18), (c>>18 + 1) << 18
}
