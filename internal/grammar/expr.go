package grammar

import (
	"encoding/binary"
	"slices"
)

// expr is an expression, by its place in the pool. Equal expressions have equal places.
type expr int32

// The two expressions that every pool begins with.
const (
	never   expr = iota // no text at all
	nothing             // the empty text
)

type kind byte

const (
	isNever   kind = iota
	isNothing      // the empty text
	isByte         // one byte of set
	isSeq          // kids[0], then kids[1]
	isAlt          // any of kids
	isRepeat       // kids[0], min to max times
	isRule         // rules[min]
)

// endless is the max of a repeat without one.
const endless = -1

type node struct {
	kind     kind
	empty    bool // the empty text matches
	min, max int32
	set      set
	kids     []expr
	next     *[256]expr // the derivative by each byte, plus one; 0 where it is not known yet
}

// pool holds the expressions of one grammar.
type pool struct {
	nodes  []node
	places map[string]expr
	key    []byte
	rules  []expr // the body of each rule
	used   int    // bytes of expressions
	moves  int    // tables of derivatives in use
}

// The limits of one grammar: the bytes of its expressions, about, and the tables of derivatives, of 1 KB each.
const (
	maxBytes  = 64 << 20
	nodeBytes = 160 // of a node beside its key, which is held twice
	maxMoves  = 1 << 15
)

func newPool() pool {
	p := pool{places: map[string]expr{}}
	p.add(node{kind: isNever})
	p.add(node{kind: isNothing, empty: true})
	return p
}

// tooLarge is thrown by add and caught by recover: an expression is built in many small calls.
type tooLarge struct{}

func (p *pool) recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case tooLarge:
		*err = ErrTooLarge
	default:
		panic(r)
	}
}

// add returns the place of n.
func (p *pool) add(n node) expr {
	k := append(p.key[:0], byte(n.kind))
	k = binary.LittleEndian.AppendUint32(k, uint32(n.min))
	k = binary.LittleEndian.AppendUint32(k, uint32(n.max))
	if n.kind == isByte {
		k = n.set.append(k)
	}
	for _, e := range n.kids {
		k = binary.LittleEndian.AppendUint32(k, uint32(e))
	}
	p.key = k
	if e, ok := p.places[string(k)]; ok {
		return e
	}
	if p.used += nodeBytes + 2*len(k); p.used > maxBytes {
		panic(tooLarge{})
	}
	e := expr(len(p.nodes))
	p.nodes = append(p.nodes, n)
	p.places[string(k)] = e
	return e
}

func (p *pool) bytes(s set) expr {
	if s == (set{}) {
		return never
	}
	return p.add(node{kind: isByte, set: s})
}

// seq is its parts one after the other, held as a list that leans right.
func (p *pool) seq(parts ...expr) expr {
	all := nothing
	for _, e := range slices.Backward(parts) {
		all = p.then(e, all)
	}
	return all
}

func (p *pool) then(a, b expr) expr {
	switch {
	case a == never || b == never:
		return never
	case a == nothing:
		return b
	case b == nothing:
		return a
	case p.nodes[a].kind == isSeq:
		kids := p.nodes[a].kids
		return p.then(kids[0], p.then(kids[1], b))
	}
	return p.add(node{kind: isSeq, empty: p.nodes[a].empty && p.nodes[b].empty, kids: []expr{a, b}})
}

// alt is any of its parts: flat, sorted, each once, single bytes joined to one set.
func (p *pool) alt(parts ...expr) expr {
	var flat []expr
	var set set
	for _, e := range parts {
		flat, set = p.flatten(flat, set, e)
	}
	if one := p.bytes(set); one != never {
		flat = append(flat, one)
	}
	slices.Sort(flat)
	flat = slices.Compact(flat)
	empty := slices.ContainsFunc(flat, func(e expr) bool { return p.nodes[e].empty })
	if empty && slices.ContainsFunc(flat, func(e expr) bool { return e != nothing && p.nodes[e].empty }) {
		flat = slices.DeleteFunc(flat, func(e expr) bool { return e == nothing })
	}
	switch len(flat) {
	case 0:
		return never
	case 1:
		return flat[0]
	}
	return p.add(node{kind: isAlt, empty: empty, kids: flat})
}

func (p *pool) flatten(flat []expr, set set, e expr) ([]expr, set) {
	switch n := &p.nodes[e]; n.kind {
	case isNever:
	case isByte:
		set = set.or(n.set)
	case isAlt:
		for _, kid := range n.kids {
			flat, set = p.flatten(flat, set, kid)
		}
	default:
		flat = append(flat, e)
	}
	return flat, set
}

// repeat is e from min to max times.
func (p *pool) repeat(e expr, min, max int32) expr {
	switch {
	case max == 0 || e == nothing:
		return nothing
	case e == never && min == 0:
		return nothing
	case e == never:
		return never
	case min == 1 && max == 1:
		return e
	}
	if p.nodes[e].empty {
		min = 0
	}
	return p.add(node{kind: isRepeat, empty: min == 0, min: min, max: max, kids: []expr{e}})
}

func (p *pool) optional(e expr) expr { return p.alt(nothing, e) }

// literal is one text.
func (p *pool) literal(text string) expr {
	all := nothing
	for i := len(text) - 1; i >= 0; i-- {
		all = p.then(p.bytes(span(text[i], text[i])), all)
	}
	return all
}

// rule opens a rule, which may be named before its body is set. Bodies are never empty texts.
func (p *pool) rule() expr {
	p.rules = append(p.rules, never)
	return p.add(node{kind: isRule, min: int32(len(p.rules) - 1)})
}

func (p *pool) define(rule, body expr) { p.rules[p.nodes[rule].min] = body }
