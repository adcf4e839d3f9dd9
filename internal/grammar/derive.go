package grammar

import "errors"

// step is what may follow b in e: the derivative of e by b. Each is worked out once, unless so many states
// were met that what was known is forgotten.
func (p *pool) step(e expr, b byte) expr {
	if e <= nothing {
		return never
	}
	n := &p.nodes[e]
	if n.next == nil {
		if p.moves == maxMoves {
			p.forget()
		}
		n.next = new([256]expr)
		p.moves++
	}
	next := n.next // nodes may move
	if next[b] == 0 {
		next[b] = p.derive(e, b) + 1
	}
	return next[b] - 1
}

func (p *pool) forget() {
	for i := range p.nodes {
		p.nodes[i].next = nil
	}
	p.moves = 0
}

// derive follows the rules of Brzozowski's paper; repeat counts down.
func (p *pool) derive(e expr, b byte) expr {
	n := p.nodes[e]
	switch n.kind {
	case isByte:
		if n.set.has(b) {
			return nothing
		}
	case isSeq:
		after := p.then(p.derive(n.kids[0], b), n.kids[1])
		if p.nodes[n.kids[0]].empty {
			return p.alt(after, p.derive(n.kids[1], b))
		}
		return after
	case isAlt:
		after := make([]expr, len(n.kids))
		for i, kid := range n.kids {
			after[i] = p.derive(kid, b)
		}
		return p.alt(after...)
	case isRepeat:
		left := n.max
		if left != endless {
			left--
		}
		return p.then(p.derive(n.kids[0], b), p.repeat(n.kids[0], max(n.min-1, 0), left))
	case isRule:
		return p.derive(p.rules[n.min], b)
	}
	return never
}

// wellFounded refuses rules that begin with themselves, whose derivative would never end, and
// rules that match the empty text, which expressions take them not to.
func (p *pool) wellFounded() error {
	state := make([]visit, len(p.rules))
	for r, body := range p.rules {
		if p.nodes[body].empty {
			return errors.New("a rule matches the empty text")
		}
		if !p.ends(int32(r), state) {
			return errors.New("a rule begins with itself")
		}
	}
	return nil
}

type visit byte

const (
	unseen visit = iota
	open
	done
)

// ends walks the rules that rule r can begin with.
func (p *pool) ends(r int32, state []visit) bool {
	if state[r] != unseen {
		return state[r] == done
	}
	state[r] = open
	ok := true
	p.heads(p.rules[r], func(rule int32) { ok = ok && p.ends(rule, state) })
	state[r] = done
	return ok
}

// heads calls f for each rule that a text of e can begin with.
func (p *pool) heads(e expr, f func(rule int32)) {
	n := &p.nodes[e]
	switch n.kind {
	case isRule:
		f(n.min)
	case isRepeat:
		p.heads(n.kids[0], f)
	case isAlt:
		for _, kid := range n.kids {
			p.heads(kid, f)
		}
	case isSeq:
		p.heads(n.kids[0], f)
		if p.nodes[n.kids[0]].empty {
			p.heads(n.kids[1], f)
		}
	}
}
