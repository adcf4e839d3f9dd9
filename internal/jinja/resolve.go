package jinja

// entry is one variable to be set when a scope is entered.
type entry struct {
	slot int
	kind sourceKind
	name string // fromContext
	ref  ref    // fromOuter
}

// resolver gives every name in the tree its variable and every filter and test its function.
// It walks the scopes as jinja2's compiler does.
type resolver struct {
	lib *library
}

// place is where the resolver is: the scope, and whether it is inside an if, where jinja2 leaves
// unknown filters and tests to be found when they are called.
type place struct {
	*scope
	soft bool
}

func (p place) softened() place { return place{p.scope, true} }

// inner opens the scope of a block; body says what jinja2 looks at for its names.
func (p place) inner(l *layout) place { return place{newScope(p.scope, l), false} }

// resolve finishes the tree of a template.
func resolve(body []stmt, lib *library) (*layout, []entry, error) {
	rs := &resolver{lib}
	root := place{newScope(nil, newLayout(nil)), false}
	if undeclared(nodesOf(body), "self")["self"] {
		return nil, nil, failAt(1, "'self' is not supported")
	}
	root.seeBody(body)
	err := rs.stmts(root, body)
	return root.layout, root.entries(), err
}

// entries lists what entering the scope sets.
func (s *scope) entries() []entry {
	var out []entry
	for _, slot := range s.order {
		from := s.loads[slot]
		e := entry{slot: slot, kind: from.kind, name: from.name}
		if from.kind == fromOuter {
			e.ref = from.from.from(s.layout)
		}
		out = append(out, e)
	}
	return out
}

func (rs *resolver) stmts(p place, body []stmt) error {
	for _, s := range body {
		if err := rs.stmt(p, s); err != nil {
			return err
		}
	}
	return nil
}

func (rs *resolver) stmt(p place, s stmt) error {
	switch s := s.(type) {
	case *outputStmt:
		return rs.exprs(p, s.node)
	case *ifStmt:
		return rs.ifStmt(p.softened(), s)
	case *forStmt:
		return rs.forStmt(p, s)
	case *setStmt:
		return rs.exprs(p, s.target, s.node)
	case *setBlockStmt:
		return rs.setBlock(p, s)
	case *macroStmt:
		s.ref = p.mustFind(s.name)
		return rs.macro(p, s.def)
	case *callStmt:
		if err := rs.macro(p, s.def); err != nil || s.call == nil {
			return err
		}
		return rs.exprs(p, s.call)
	case *filterStmt:
		inner := p.inner(p.layout)
		inner.seeBody(s.body)
		inner.see(s.filter)
		s.enter = inner.entries()
		if err := rs.stmts(inner, s.body); err != nil {
			return err
		}
		return rs.exprs(inner, s.filter)
	case *withStmt:
		return rs.with(p, s)
	}
	return nil
}

func (rs *resolver) ifStmt(p place, s *ifStmt) error {
	if err := rs.exprs(p, s.test); err != nil {
		return err
	}
	if err := rs.stmts(p, s.body); err != nil {
		return err
	}
	for _, elif := range s.elifs {
		if err := rs.ifStmt(p, elif); err != nil {
			return err
		}
	}
	return rs.stmts(p, s.other)
}

func (rs *resolver) forStmt(p place, s *forStmt) error {
	if err := loopAssigned(s); err != nil {
		return err
	}
	body, other := p.inner(p.layout), p.inner(p.layout)
	if undeclared(nodesOf(s.body), "loop")["loop"] {
		v := body.declare("loop").from(p.layout)
		s.loopVar = &v
	}
	body.seeTarget(s.target)
	body.seeBody(s.body)
	other.seeBody(s.other)
	if s.filter != nil {
		if err := rs.forTest(p, s.filter); err != nil {
			return err
		}
	}
	s.enter, s.enterOther = body.entries(), other.entries()
	if err := rs.exprs(p, s.iter); err != nil {
		return err
	}
	if err := rs.exprs(body, s.target); err != nil {
		return err
	}
	if err := rs.stmts(body, s.body); err != nil {
		return err
	}
	return rs.stmts(other, s.other)
}

func (rs *resolver) forTest(p place, f *forTest) error {
	f.layout = newLayout(p.layout)
	test := p.inner(f.layout)
	test.seeTarget(f.target)
	test.see(f.test)
	f.enter = test.entries()
	return rs.exprs(test, f.target, f.test)
}

// loopAssigned refuses to set the special variable loop anywhere in a for.
func loopAssigned(n node) error {
	if name, ok := n.(*nameExpr); ok && name.use == store && name.name == "loop" {
		return failAt(name.line, "can't assign to special loop variable in for-loop target")
	}
	for _, child := range children(n) {
		if err := loopAssigned(child); err != nil {
			return err
		}
	}
	return nil
}

func (rs *resolver) setBlock(p place, s *setBlockStmt) error {
	inner := p.inner(p.layout)
	inner.seeBody(s.body)
	if s.filter != nil {
		// jinja2 does not look at the filter's names here, so new ones have no variable.
		if err := unknownNames(inner.scope, s.filter); err != nil {
			return err
		}
	}
	s.enter = inner.entries()
	if err := rs.stmts(inner, s.body); err != nil {
		return err
	}
	if err := rs.exprs(p, s.target); err != nil {
		return err
	}
	if s.filter == nil {
		return nil
	}
	return rs.exprs(inner, s.filter)
}

func unknownNames(s *scope, n node) error {
	if name, ok := n.(*nameExpr); ok {
		if _, found := s.find(name.name); !found {
			return failAt(name.line, "name '%s' is used in the filter of a set block and nowhere else", name.name)
		}
	}
	for _, child := range children(n) {
		if err := unknownNames(s, child); err != nil {
			return err
		}
	}
	return nil
}

// macro resolves the function of a macro or call block.
func (rs *resolver) macro(p place, def *macroDef) error {
	l := newLayout(p.layout)
	inner := p.inner(l)
	for _, arg := range def.args {
		inner.see(arg)
	}
	for _, d := range def.defaults {
		inner.see(d)
	}
	inner.seeBody(def.body)
	if err := def.special(inner.scope); err != nil {
		return err
	}
	def.layout, def.enter = l, inner.entries()
	for _, arg := range def.args {
		arg.ref = inner.mustFind(arg.name)
	}
	if err := rs.exprs(inner, def.defaults...); err != nil {
		return err
	}
	return rs.stmts(inner, def.body)
}

func (rs *resolver) with(p place, s *withStmt) error {
	inner := p.inner(p.layout)
	for _, target := range s.targets {
		inner.see(target)
	}
	inner.seeBody(s.body)
	s.enter = inner.entries()
	if err := rs.exprs(inner, s.targets...); err != nil {
		return err
	}
	if err := rs.exprs(p, s.values...); err != nil {
		return err
	}
	return rs.stmts(inner, s.body)
}

func (s *scope) mustFind(name string) ref {
	v, ok := s.find(name)
	if !ok {
		panic("jinja: name " + name + " has no variable")
	}
	return v.from(s.layout)
}

func (rs *resolver) exprs(p place, list ...expr) error {
	for _, e := range list {
		if err := rs.node(p, e); err != nil {
			return err
		}
	}
	return nil
}

func (rs *resolver) node(p place, n node) error {
	var err error
	switch n := n.(type) {
	case *nameExpr:
		n.ref = p.mustFind(n.name)
	case *nsExpr:
		n.ref = p.mustFind(n.name)
	case *filterExpr:
		n.fn, err = lookUp(rs.lib.filters, refusedFilters, "filter", n.name, n.line, p.soft)
	case *testExpr:
		n.fn, err = lookUp(rs.lib.tests, nil, "test", n.name, n.line, p.soft)
	case *condExpr:
		p = p.softened()
	}
	if err != nil {
		return err
	}
	for _, child := range children(n) {
		if err := rs.node(p, child); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds a filter or test; inside an if an unknown one is left to fail when it is called.
func lookUp(known map[string]*function, refused map[string]bool, kind, name string, line int, soft bool) (*function, error) {
	fn, ok := known[name]
	if !ok && refused[name] {
		return nil, failAt(line, "%s '%s' is not supported", kind, name)
	}
	if !ok && !soft {
		return nil, failAt(line, "no %s named '%s'", kind, name)
	}
	return fn, nil
}
