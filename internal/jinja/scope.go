package jinja

// jinja2 compiles a template to Python functions and decides beforehand which Python variable
// each name is: its own, that of a scope around it, or one read from the context on entering.
// The outcome shows in corner cases (a name that is set later in the same scope, or in one branch
// of an if), so this file decides in the same way. It follows jinja2.idtracking and the scopes
// of jinja2.compiler.

// layout is one such function: the template, a macro, a call block, the test of a for.
type layout struct {
	outer *layout
	slots map[slotName]int
}

// slotName is jinja2's l_{level}_{name}: scopes of one function at one level share variables.
type slotName struct {
	level int
	name  string
}

func (l *layout) slot(level int, name string) int {
	key := slotName{level, name}
	i, ok := l.slots[key]
	if !ok {
		i = len(l.slots)
		l.slots[key] = i
	}
	return i
}

func newLayout(outer *layout) *layout { return &layout{outer, map[slotName]int{}} }

// ref is a variable as seen from a function: slot in the function up levels further out.
type ref struct{ up, slot int }

// variable is a slot of a layout.
type variable struct {
	in   *layout
	slot int
}

// from addresses the variable as code of l sees it.
func (v variable) from(l *layout) ref {
	up := 0
	for ; l != v.in; l = l.outer {
		up++
	}
	return ref{up, v.slot}
}

// source tells where a variable gets its value when its scope is entered.
type source struct {
	kind sourceKind
	name string   // fromContext
	from variable // fromOuter
}

type sourceKind int

const (
	fromNowhere sourceKind = iota // it stays missing
	fromContext
	fromOuter
	fromCaller // the block that heads the scope sets it
)

// scope holds the names of one block that has names of its own (jinja2's Symbols). The branch of
// an if gets a copy of the scope around it: an empty scope over its base.
type scope struct {
	level  int
	outer  *scope
	base   *scope
	layout *layout
	refs   map[string]variable
	loads  map[int]source // by slot of layout
	order  []int          // the keys of loads, as first seen
	stores map[string]bool
}

func newScope(outer *scope, l *layout) *scope {
	s := &scope{outer: outer, layout: l, refs: map[string]variable{}, loads: map[int]source{}, stores: map[string]bool{}}
	if outer != nil {
		s.level = outer.level + 1
	}
	return s
}

func (s *scope) find(name string) (variable, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.own(name); ok {
			return v, true
		}
	}
	return variable{}, false
}

// own finds a name of this scope alone.
func (s *scope) own(name string) (variable, bool) {
	for ; s != nil; s = s.base {
		if v, ok := s.refs[name]; ok {
			return v, true
		}
	}
	return variable{}, false
}

func (s *scope) stored(name string) bool {
	for ; s != nil; s = s.base {
		if s.stores[name] {
			return true
		}
	}
	return false
}

func (s *scope) define(name string, from source) variable {
	v := variable{s.layout, s.layout.slot(s.level, name)}
	s.refs[name] = v
	s.setLoad(v.slot, from)
	return v
}

func (s *scope) setLoad(slot int, from source) {
	if _, ok := s.loads[slot]; !ok {
		s.order = append(s.order, slot)
	}
	s.loads[slot] = from
}

func (s *scope) storeName(name string) {
	s.stores[name] = true
	if _, ok := s.own(name); ok {
		return
	}
	if v, ok := s.outer.find(name); ok {
		s.define(name, source{kind: fromOuter, from: v})
		return
	}
	s.define(name, source{kind: fromNowhere})
}

func (s *scope) loadName(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, source{kind: fromContext, name: name})
	}
}

func (s *scope) declare(name string) variable {
	s.stores[name] = true
	return s.define(name, source{kind: fromCaller})
}

func (s *scope) copy() *scope {
	c := newScope(s.outer, s.layout)
	c.level, c.base = s.level, s
	return c
}

func (s *scope) merge(o *scope) {
	for name, v := range o.refs {
		s.refs[name] = v
	}
	for _, slot := range o.order {
		s.setLoad(slot, o.loads[slot])
	}
	for name := range o.stores {
		s.stores[name] = true
	}
}

// mergeBranches takes in what the branches of an if did to copies of s. What only some of them
// store has to have a value on the way around them.
func (s *scope) mergeBranches(branches ...*scope) {
	fresh := map[string]bool{}
	for _, branch := range branches {
		for name := range branch.stores {
			if !s.stored(name) {
				fresh[name] = true
			}
		}
	}
	for _, branch := range branches {
		s.merge(branch)
	}
	for name := range fresh {
		v, _ := s.find(name)
		if outer, ok := s.outer.find(name); ok {
			s.setLoad(v.slot, source{kind: fromOuter, from: outer})
		} else {
			s.setLoad(v.slot, source{kind: fromContext, name: name})
		}
	}
}

// see records the names of nodes as jinja2's FrameSymbolVisitor does: in its order, and not
// into blocks that have a scope of their own.
func (s *scope) see(nodes ...node) {
	for _, n := range nodes {
		s.seeOne(n)
	}
}

func (s *scope) seeOne(n node) {
	switch n := n.(type) {
	case *nameExpr:
		switch n.use {
		case load:
			s.loadName(n.name)
		case store:
			s.storeName(n.name)
		default:
			s.declare(n.name)
		}
	case *nsExpr:
		s.loadName(n.name)
	case *ifStmt:
		s.seeIf(n)
	case *setStmt:
		s.see(n.node, n.target)
	case *setBlockStmt:
		s.see(n.target)
	case *macroStmt:
		s.storeName(n.name)
	case *forStmt:
		s.see(n.iter)
	case *callStmt:
		if n.call != nil {
			s.see(n.call)
		}
	case *filterStmt:
		s.see(n.filter)
	case *withStmt:
		for _, v := range n.values {
			s.see(v)
		}
	default:
		s.see(children(n)...)
	}
}

func (s *scope) seeIf(n *ifStmt) {
	s.see(n.test)
	body, elifs, other := s.copy(), s.copy(), s.copy()
	body.seeBody(n.body)
	for _, elif := range n.elifs {
		elifs.see(elif)
	}
	other.seeBody(n.other)
	s.mergeBranches(body, elifs, other)
}

func (s *scope) seeBody(body []stmt) {
	for _, st := range body {
		s.see(st)
	}
}

// seeTarget declares the names of a for's target, which the loop sets.
func (s *scope) seeTarget(n node) {
	if name, ok := n.(*nameExpr); ok {
		s.declare(name.name)
		return
	}
	for _, child := range children(n) {
		s.seeTarget(child)
	}
}

// undeclared tells which of names the nodes use before anything else there has the name
// (UndeclaredNameVisitor).
func undeclared(nodes []node, names ...string) map[string]bool {
	open, used := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	var visit func(n node)
	visit = func(n node) {
		if name, ok := n.(*nameExpr); ok {
			if name.use == load && open[name.name] {
				used[name.name] = true
			} else {
				delete(open, name.name)
			}
			return
		}
		for _, child := range children(n) {
			visit(child)
		}
	}
	for _, n := range nodes {
		visit(n)
	}
	return used
}

func nodesOf(body []stmt) []node {
	nodes := make([]node, len(body))
	for i, s := range body {
		nodes[i] = s
	}
	return nodes
}
