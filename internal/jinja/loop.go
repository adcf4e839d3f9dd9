package jinja

import "errors"

// loop is the loop variable of a for, jinja2's LoopContext: it walks the iterable, one item
// ahead when a template asks for what comes next.
type loop struct {
	over    Value
	it      iterator
	index0  int
	known   int // the length, once known; else -1
	current Value
	before  Value
	after   Value // the item looked ahead at, or nil
	changed Value // what loop.changed was last called with
}

func (*loop) typeName() string { return "LoopContext" }

func newLoop(over Value, it iterator) *loop {
	return &loop{over: over, it: it, index0: -1, known: -1}
}

// advance moves to the next item.
func (l *loop) advance(r *run) (Value, bool, error) {
	v, ok, err := l.peek(r)
	if !ok || err != nil {
		return nil, false, err
	}
	l.after = nil
	l.index0++
	l.before, l.current = l.current, v
	return v, true, nil
}

func (l *loop) peek(r *run) (Value, bool, error) {
	if l.after != nil {
		return l.after, true, nil
	}
	v, ok, err := l.it.next(r)
	if ok {
		l.after = v
	}
	return v, ok, err
}

// length is that of the iterable; one that does not know is read to its end.
func (l *loop) length(r *run) (int, error) {
	if l.known >= 0 {
		return l.known, nil
	}
	if n, ok := length(l.over); ok {
		l.known = n
		return n, nil
	}
	rest, err := collect(r, &generator{"generator", l.it.next})
	if err != nil {
		return 0, err
	}
	l.it = overItems(rest)
	l.known = len(rest) + l.index0 + 1
	if l.after != nil {
		l.known++
	}
	return l.known, nil
}

func (l *loop) attribute(r *run, name string) (Value, bool, error) {
	switch name {
	case "index":
		return integer(l.index0 + 1), true, nil
	case "index0":
		return integer(l.index0), true, nil
	case "depth":
		return integer(1), true, nil
	case "depth0":
		return integer(0), true, nil
	case "first":
		return boolean(l.index0 == 0), true, nil
	case "length", "revindex", "revindex0":
		n, err := l.length(r)
		return integer(n - map[string]int{"revindex": l.index0, "revindex0": l.index0 + 1}[name]), true, err
	case "last":
		_, ok, err := l.peek(r)
		return boolean(!ok), true, err
	case "nextitem":
		v, ok, err := l.peek(r)
		if !ok {
			v = &undefined{hint: "there is no next item"}
		}
		return v, true, err
	case "previtem":
		if l.index0 == 0 {
			return &undefined{hint: "there is no previous item"}, true, nil
		}
		return l.before, true, nil
	case "cycle":
		return &function{name: name, variadic: l.cycle}, true, nil
	case "changed":
		return &function{name: name, variadic: l.hasChanged}, true, nil
	}
	return nil, false, nil
}

func (l *loop) cycle(_ *run, args []Value, kwargs []kwarg) (Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, errors.New("no items for cycling given")
	}
	return args[l.index0%len(args)], nil
}

func (l *loop) hasChanged(r *run, args []Value, kwargs []kwarg) (Value, error) {
	if len(kwargs) > 0 {
		return nil, errors.New("changed() takes no keyword arguments")
	}
	now := newTuple(args...)
	if l.changed != nil {
		if same, err := equal(r, l.changed, now); same || err != nil {
			return boolean(false), err
		}
	}
	l.changed = now
	return boolean(true), nil
}

func (l *loop) call(*run, []Value, []kwarg) (Value, error) {
	return nil, errors.New("the loop must have the 'recursive' marker to be called recursively")
}

func (s *forStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	over, it, err := s.open(r, f)
	if err != nil {
		return goOn, onLine(s.line, err)
	}
	l := newLoop(over, it)
	ran := false // whether a round came to its end: as in jinja2, one cut short does not count
	for {
		item, ok, err := l.advance(r)
		if err != nil {
			return goOn, onLine(s.line, err)
		}
		if !ok {
			break
		}
		flow, err := s.round(r, f, out, l, item)
		if err != nil {
			return goOn, err
		}
		if flow == breakLoop {
			break
		}
		ran = ran || flow == goOn
	}
	leaveScope(f, s.enter)
	if ran {
		return goOn, nil
	}
	return s.otherwise(r, f, out)
}

// open evaluates what the loop runs over, behind its test if it has one.
func (s *forStmt) open(r *run, f *frame) (Value, iterator, error) {
	over, err := s.iter.eval(r, f)
	if err != nil {
		return nil, nil, err
	}
	it, err := iterate(over)
	if err != nil || s.filter == nil {
		return over, it, err
	}
	g := s.filter.over(f, it)
	return g, g, nil
}

// round runs the body once.
func (s *forStmt) round(r *run, f *frame, out *buffer, l *loop, item Value) (flow, error) {
	if s.loopVar != nil {
		f.set(*s.loopVar, l)
	}
	if err := assign(r, f, s.target, item); err != nil {
		return goOn, onLine(s.line, err)
	}
	if err := r.enterScope(f, s.enter); err != nil {
		return goOn, onLine(s.line, err)
	}
	return execAll(r, f, out, s.body)
}

func (s *forStmt) otherwise(r *run, f *frame, out *buffer) (flow, error) {
	if len(s.other) == 0 {
		return goOn, nil
	}
	if err := r.enterScope(f, s.enterOther); err != nil {
		return goOn, onLine(s.line, err)
	}
	flow, err := execAll(r, f, out, s.other)
	leaveScope(f, s.enterOther)
	return flow, err
}

// over lets those items through that pass the test. It asks item by item, while the loop runs.
func (t *forTest) over(outer *frame, it iterator) *generator {
	var f *frame
	return newGenerator(func(r *run) (Value, bool, error) {
		if f == nil {
			f = newFrame(t.layout, outer)
			if err := r.enterScope(f, t.enter); err != nil {
				return nil, false, err
			}
		}
		for {
			item, ok, err := it.next(r)
			if !ok || err != nil {
				return nil, false, err
			}
			if err := assign(r, f, t.target, item); err != nil {
				return nil, false, err
			}
			pass, err := t.test.eval(r, f)
			if err != nil {
				return nil, false, err
			}
			if truth(pass) {
				return t.item(f, item), true, nil
			}
		}
	})
}

// item gives back what the target took apart: jinja2 yields the target, so a pair that came as a
// list goes on as a tuple.
func (t *forTest) item(f *frame, item Value) Value {
	names, ok := t.target.(*tupleExpr)
	if !ok {
		return item
	}
	return rebuild(f, names)
}

func rebuild(f *frame, target *tupleExpr) Value {
	items := make([]Value, len(target.items))
	for i, e := range target.items {
		switch e := e.(type) {
		case *nameExpr:
			items[i] = f.get(e.ref)
		case *tupleExpr:
			items[i] = rebuild(f, e)
		}
	}
	return &tuple{items: items}
}
