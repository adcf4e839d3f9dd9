package jinja

import "strings"

func (e *constExpr) eval(*run, *frame) (Value, error) { return e.value, nil }

func (e *nameExpr) eval(r *run, f *frame) (Value, error) {
	if v := f.get(e.ref); v != nil {
		return v, r.step(1)
	}
	return undefinedName(e.name), nil
}

func (e *nsExpr) eval(*run, *frame) (Value, error) {
	panic("jinja: namespace target " + e.name + " evaluated")
}

func evalAll(r *run, f *frame, list []expr) ([]Value, error) {
	if err := r.items(len(list)); err != nil {
		return nil, err
	}
	out := make([]Value, len(list))
	for i, e := range list {
		v, err := e.eval(r, f)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (e *tupleExpr) eval(r *run, f *frame) (Value, error) {
	items, err := evalAll(r, f, e.items)
	return &tuple{items: items}, err
}

func (e *listExpr) eval(r *run, f *frame) (Value, error) {
	items, err := evalAll(r, f, e.items)
	return &list{items}, err
}

func (e *dictExpr) eval(r *run, f *frame) (Value, error) {
	m := NewMap()
	if err := r.items(4 * len(e.keys)); err != nil {
		return nil, err
	}
	for i := range e.keys {
		key, err := e.keys[i].eval(r, f)
		if err != nil {
			return nil, err
		}
		value, err := e.values[i].eval(r, f)
		if err != nil {
			return nil, err
		}
		if err := m.set(key, value); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (e *binExpr) eval(r *run, f *frame) (Value, error) {
	left, err := e.left.eval(r, f)
	if err != nil {
		return nil, err
	}
	right, err := e.right.eval(r, f)
	if err != nil {
		return nil, err
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	v, err := binary(r, e.op, left, right)
	return v, onLine(e.line, err)
}

func (e *logicExpr) eval(r *run, f *frame) (Value, error) {
	left, err := e.left.eval(r, f)
	if err != nil || truth(left) == e.or {
		return left, err
	}
	return e.right.eval(r, f)
}

func (e *notExpr) eval(r *run, f *frame) (Value, error) {
	v, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	return boolean(!truth(v)), nil
}

func (e *signExpr) eval(r *run, f *frame) (Value, error) {
	v, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	sign := negate
	if e.op == "+" {
		sign = plus
	}
	v, err = sign(v)
	return v, onLine(e.line, err)
}

func (e *concatExpr) eval(r *run, f *frame) (Value, error) {
	var parts []string
	size := 0
	for _, n := range e.nodes {
		v, err := n.eval(r, f)
		if err != nil {
			return nil, err
		}
		s, err := r.str(v)
		if err != nil {
			return nil, onLine(e.line, err)
		}
		parts = append(parts, s)
		size += len(s)
	}
	if err := r.alloc(size); err != nil {
		return nil, onLine(e.line, err)
	}
	return str(strings.Join(parts, "")), nil
}

func (e *compareExpr) eval(r *run, f *frame) (Value, error) {
	left, err := e.expr.eval(r, f)
	if err != nil {
		return nil, err
	}
	for _, op := range e.ops {
		right, err := op.expr.eval(r, f)
		if err != nil {
			return nil, err
		}
		ok, err := compare(r, op.op, left, right)
		if err != nil {
			return nil, onLine(e.line, err)
		}
		if !ok {
			return boolean(false), nil
		}
		left = right
	}
	return boolean(true), nil
}

func (e *attrExpr) eval(r *run, f *frame) (Value, error) {
	obj, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	v, err := getAttr(r, obj, e.attr)
	return v, onLine(e.line, err)
}

func (e *itemExpr) eval(r *run, f *frame) (Value, error) {
	obj, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	key, err := e.arg.eval(r, f)
	if err != nil {
		return nil, err
	}
	v, err := getItem(r, obj, key)
	return v, onLine(e.line, err)
}

func (e *sliceExpr) eval(r *run, f *frame) (Value, error) {
	obj, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value
	for i, bound := range []expr{e.start, e.stop, e.step} {
		if bound == nil {
			continue
		}
		if bounds[i], err = bound.eval(r, f); err != nil {
			return nil, err
		}
	}
	v, err := slice(r, obj, bounds[0], bounds[1], bounds[2])
	return v, onLine(e.line, err)
}

func (e *callExpr) eval(r *run, f *frame) (Value, error) { return e.evalWith(r, f) }

// evalWith calls with keyword arguments on top of those written: the caller of a call block.
func (e *callExpr) evalWith(r *run, f *frame, extra ...kwarg) (Value, error) {
	fn, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := e.args.eval(r, f, nil)
	if err != nil {
		return nil, onLine(e.line, err)
	}
	for _, kw := range extra {
		if kwargs, err = addKwarg(kwargs, kw); err != nil {
			return nil, onLine(e.line, err)
		}
	}
	v, err := call(r, fn, args, kwargs)
	return v, onLine(e.line, err)
}

// eval computes the arguments behind first, which may be nil.
func (a *arguments) eval(r *run, f *frame, first Value) (args []Value, kwargs []kwarg, err error) {
	if first != nil {
		args = append(args, first)
	}
	for _, e := range a.args {
		v, err := e.eval(r, f)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, v)
	}
	if a.dynArgs != nil {
		v, err := a.dynArgs.eval(r, f)
		if err != nil {
			return nil, nil, err
		}
		more, err := collect(r, v)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, more...)
	}
	for i, e := range a.kwargs {
		v, err := e.eval(r, f)
		if err != nil {
			return nil, nil, err
		}
		kwargs = append(kwargs, kwarg{a.names[i], v})
	}
	if a.dynKwargs != nil {
		kwargs, err = a.spread(r, f, kwargs)
	}
	return args, kwargs, err
}

func (e *filterExpr) eval(r *run, f *frame) (Value, error) {
	v, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	return e.apply(r, f, v)
}

// filterBlock runs the chain of filters on what a block made.
func (e *filterExpr) filterBlock(r *run, f *frame, made Value) (Value, error) {
	if inner, ok := e.node.(*filterExpr); ok {
		v, err := inner.filterBlock(r, f, made)
		if err != nil {
			return nil, err
		}
		made = v
	}
	return e.apply(r, f, made)
}

func (e *filterExpr) apply(r *run, f *frame, v Value) (Value, error) {
	args, kwargs, err := e.args.eval(r, f, v)
	if err != nil {
		return nil, err
	}
	if e.fn == nil {
		return nil, failAt(e.line, "no filter named '%s' found", e.name)
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	v, err = e.fn.call(r, args, kwargs)
	return v, onLine(e.line, err)
}

func (e *testExpr) eval(r *run, f *frame) (Value, error) {
	v, err := e.node.eval(r, f)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := e.args.eval(r, f, v)
	if err != nil {
		return nil, err
	}
	if e.fn == nil {
		return nil, failAt(e.line, "no test named '%s' found", e.name)
	}
	if err := r.step(1); err != nil {
		return nil, err
	}
	v, err = e.fn.call(r, args, kwargs)
	return v, onLine(e.line, err)
}

func (e *condExpr) eval(r *run, f *frame) (Value, error) {
	test, err := e.test.eval(r, f)
	if err != nil {
		return nil, err
	}
	if truth(test) {
		return e.yes.eval(r, f)
	}
	if e.no != nil {
		return e.no.eval(r, f)
	}
	return &undefined{hint: "the inline if-expression evaluated to false and no else section was defined."}, nil
}
