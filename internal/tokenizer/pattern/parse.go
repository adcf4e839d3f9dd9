package pattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

const (
	maxNesting = 32  // groups and classes inside each other; files in use reach 3
	maxStacked = 3   // quantifiers on one atom; files in use have 2: {1,3}+
	maxRepeat  = 100 // the largest number in {n,m}: a repeat is unrolled
)

type op uint8

const (
	opEmpty  op = iota
	opSet       // one code point of set
	opCat       // subs one after the other
	opAlt       // the first of subs that leads to a match
	opRepeat    // subs[0], min to max times
	opAhead     // one code point of set follows, and is not taken
	opNot       // none of set follows: another code point, or the end
	opStart     // of the text
	opEnd       // of the text
	opLineStart
	opLineEnd
)

// mode is what a repeat tries first, and whether it gives back.
type mode uint8

const (
	greedy mode = iota
	lazy
	possessive
)

const unbounded = -1

type node struct {
	op       op
	set      ucd.Ranges
	dot      bool // set was written as .
	letter   rune // set is this ASCII letter, in lower case, under (?i:...)
	subs     []*node
	min, max int
	mode     mode
}

// parser reads an expression by recursive descent. Errors leave by panic(syntaxError), in parse only.
type parser struct {
	expr    string
	at      int
	depth   int
	fold    bool                  // inside (?i:...)
	classes map[string]ucd.Ranges // those named so far
}

type syntaxError struct{ error }

func parse(expr string) (root *node, err error) {
	if len(expr) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes, limit is %d", len(expr), maxPattern)
	}
	if !utf8.ValidString(expr) {
		return nil, fmt.Errorf("pattern is not valid UTF-8")
	}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			err = e.error
		}
	}()
	p := &parser{expr: expr, classes: map[string]ucd.Ranges{}}
	root = p.alternatives()
	if p.at < len(expr) {
		p.fail("unmatched )")
	}
	return root, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError{fmt.Errorf("pattern at byte %d: %s", p.at, fmt.Sprintf(format, args...))})
}

func (p *parser) rest() string { return p.expr[p.at:] }

// take steps over prefix if it is next.
func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.rest(), prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

func (p *parser) next() rune {
	if p.at == len(p.expr) {
		p.fail("ends too early")
	}
	c, size := utf8.DecodeRuneInString(p.rest())
	p.at += size
	return c
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested deeper than %d", maxNesting)
	}
}

// alternatives reads up to the end or an unmatched ).
func (p *parser) alternatives() *node {
	p.enter()
	defer func() { p.depth-- }()
	alt := &node{op: opAlt, subs: []*node{p.sequence()}}
	for p.take("|") {
		alt.subs = append(alt.subs, p.sequence())
	}
	if len(alt.subs) == 1 {
		return alt.subs[0]
	}
	return alt
}

func (p *parser) sequence() *node {
	cat := &node{op: opCat}
	for p.at < len(p.expr) && p.expr[p.at] != '|' && p.expr[p.at] != ')' {
		item := p.repeats(p.atom())
		if n := len(cat.subs); n > 0 {
			p.checkAnchor(cat.subs[n-1], item)
			p.checkFold(cat.subs[n-1], item)
		}
		cat.subs = append(cat.subs, item)
	}
	switch len(cat.subs) {
	case 0:
		return &node{op: opEmpty}
	case 1:
		return cat.subs[0]
	}
	return cat
}

// checkAnchor refuses .* right behind a look-ahead or line end. Oniguruma lets an expression
// that begins with .* match at the starts of lines only, which is wrong for these.
func (p *parser) checkAnchor(before, item *node) {
	switch before.op {
	case opAhead, opNot, opLineEnd:
		if item.dots() {
			p.fail(".* behind a look-ahead or $ is not supported")
		}
	}
}

// dots reports whether n begins with an unbounded repeat of any code point.
func (n *node) dots() bool {
	switch n.op {
	case opRepeat:
		return n.max == unbounded && n.subs[0].dot || n.subs[0].dots()
	case opCat, opAlt:
		return slices.ContainsFunc(n.subs, (*node).dots)
	}
	return false
}

// checkFold refuses the letter pairs that Oniguruma also folds into one code point (ss and
// ß, fi and ﬁ, st and ﬆ): under (?i:...) they would match more than they say.
func (p *parser) checkFold(before, item *node) {
	for _, a := range before.letters(func(n int) int { return n - 1 }) {
		for _, b := range item.letters(func(int) int { return 0 }) {
			if pair := string([]rune{a, b}); slices.Contains([]string{"ss", "ff", "fi", "fl", "st"}, pair) {
				p.fail("%q under (?i:) folds to single code points, which is not supported", pair)
			}
		}
	}
}

// letters are those that n may begin or end with, as pick chooses among n parts.
func (n *node) letters(pick func(n int) int) []rune {
	switch n.op {
	case opSet:
		if n.letter != 0 {
			return []rune{n.letter}
		}
	case opCat, opRepeat:
		return n.subs[pick(len(n.subs))].letters(pick)
	case opAlt:
		var all []rune
		for _, s := range n.subs {
			all = append(all, s.letters(pick)...)
		}
		return all
	}
	return nil
}

func (p *parser) atom() *node {
	switch c := p.next(); c {
	case '(':
		return p.group()
	case '[':
		return &node{op: opSet, set: p.class()}
	case '.':
		return &node{op: opSet, dot: true, set: ucd.Ranges{{Lo: '\n', Hi: '\n'}}.Complement()}
	case '^':
		return &node{op: opLineStart}
	case '$':
		return &node{op: opLineEnd}
	case '*', '+', '?':
		p.fail("%q has nothing to repeat", c)
	case '{', '}', ']':
		p.fail("%q must be escaped", c)
	case '\\':
		return p.escape()
	default:
		return p.literal(c)
	}
	return nil
}

func (p *parser) group() *node {
	var n *node
	switch {
	case p.take("?:"):
		n = p.alternatives()
	case p.take("?i:"):
		outer := p.fold
		p.fold = true
		n = p.alternatives()
		p.fold = outer
	case p.take("?="):
		n = p.look(opAhead)
	case p.take("?!"):
		n = p.look(opNot)
	case strings.HasPrefix(p.rest(), "?"):
		p.fail("group (%.3s is not supported", p.rest())
	default:
		n = p.alternatives() // a captured group: captures are not used
	}
	if !p.take(")") {
		p.fail("missing )")
	}
	return n
}

func (p *parser) look(kind op) *node {
	n := p.alternatives()
	if n.op != opSet {
		p.fail("look-ahead over anything but one code point is not supported")
	}
	return &node{op: kind, set: n.set}
}

// repeats reads the quantifiers after an atom.
func (p *parser) repeats(n *node) *node {
	for stacked := 0; ; stacked++ {
		lo, hi, ok := p.quantifier()
		if !ok {
			return n
		}
		if stacked == maxStacked {
			p.fail("more than %d quantifiers on one item", maxStacked)
		}
		r := &node{op: opRepeat, subs: []*node{n}, min: lo, max: hi}
		interval := p.expr[p.at-1] == '}'
		switch {
		case interval && p.take("?"):
			if lo == hi { // Oniguruma reads x{n}? as (?:x{n})?
				p.fail("{n}? is not supported")
			}
			r.mode = lazy
		case p.take("?"):
			r.mode = lazy
		case !interval && p.take("+"): // x{n,m}+ repeats the interval
			r.mode = possessive
		}
		p.checkRepeat(r)
		n = r
	}
}

func (p *parser) checkRepeat(r *node) {
	sub := r.subs[0]
	switch {
	case r.mode == possessive && sub.op != opSet:
		p.fail("a possessive repeat of more than one code point is not supported")
	case r.max != 1 && sub.nullable():
		p.fail("a repeat of what can be empty is not supported")
	}
}

func (p *parser) quantifier() (lo, hi int, ok bool) {
	switch {
	case p.take("*"):
		return 0, unbounded, true
	case p.take("+"):
		return 1, unbounded, true
	case p.take("?"):
		return 0, 1, true
	case p.take("{"):
		lo, hi = p.interval()
		return lo, hi, true
	}
	return 0, 0, false
}

// interval reads n}, n,} or n,m} or ,m}.
func (p *parser) interval() (lo, hi int) {
	body, _, ok := strings.Cut(p.rest(), "}")
	low, high, two := strings.Cut(body, ",")
	if !two {
		high = low
	}
	number := func(s string, empty int) int {
		if s == "" && two {
			return empty
		}
		v, err := strconv.ParseUint(s, 10, 31)
		if err != nil || v > maxRepeat {
			p.fail("interval {%.12s} is not supported", body)
		}
		return int(v)
	}
	lo, hi = number(low, 0), number(high, unbounded)
	if !ok || body == "," || hi != unbounded && lo > hi || hi == 0 {
		p.fail("interval {%.12s} is not supported", body)
	}
	p.at += len(body) + 1
	return lo, hi
}

// nullable reports whether n can match without taking a code point.
func (n *node) nullable() bool {
	switch n.op {
	case opSet:
		return false
	case opCat:
		for _, s := range n.subs {
			if !s.nullable() {
				return false
			}
		}
	case opAlt:
		for _, s := range n.subs {
			if s.nullable() {
				return true
			}
		}
		return false
	case opRepeat:
		return n.min == 0 || n.subs[0].nullable()
	}
	return true
}
