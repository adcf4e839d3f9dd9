package jinja

import "fmt"

// macroDef is the function of a macro, a call block or a generation block.
type macroDef struct {
	name     string // empty for the blocks
	args     []*nameExpr
	defaults []expr // of the last args
	body     []stmt
	line     int
	layout   *layout
	enter    []entry
	// where the special names go, when the body uses them
	caller, kwargs, varargs *ref
	explicitCaller          bool // caller is one of args
}

// special declares the names that a macro gets without listing them, where its body uses them.
func (d *macroDef) special(s *scope) error {
	listed := map[string]bool{}
	for i, arg := range d.args {
		listed[arg.name] = true
		if arg.name == "caller" {
			d.explicitCaller = true
			if i < len(d.args)-len(d.defaults) && undeclared(nodesOf(d.body), "caller")["caller"] {
				return failAt(d.line, "the special \"caller\" argument must be omitted or be given a default")
			}
		}
	}
	used := undeclared(nodesOf(d.body), "caller", "kwargs", "varargs")
	for _, one := range []struct {
		name string
		to   **ref
	}{{"caller", &d.caller}, {"kwargs", &d.kwargs}, {"varargs", &d.varargs}} {
		if used[one.name] && !listed[one.name] {
			v := s.declare(one.name).from(s.layout)
			*one.to = &v
		}
	}
	return nil
}

// macro is a macroDef closed over the frame it was defined in.
type macro struct {
	def   *macroDef
	outer *frame
}

func (*macro) typeName() string { return "Macro" }

func (m *macro) attribute(_ *run, name string) (Value, bool, error) {
	switch name {
	case "name":
		if m.def.name == "" {
			return none{}, true, nil
		}
		return str(m.def.name), true, nil
	case "arguments":
		t := &tuple{}
		for _, arg := range m.def.args {
			t.items = append(t.items, str(arg.name))
		}
		return t, true, nil
	case "caller":
		return boolean(m.def.caller != nil), true, nil
	case "catch_kwargs":
		return boolean(m.def.kwargs != nil), true, nil
	case "catch_varargs":
		return boolean(m.def.varargs != nil), true, nil
	case "explicit_caller":
		return boolean(m.def.explicitCaller), true, nil
	}
	return nil, false, nil
}

func (m *macro) call(r *run, args []Value, kwargs []kwarg) (Value, error) {
	f := newFrame(m.def.layout, m.outer)
	if err := r.items(len(f.vars)); err != nil {
		return nil, err
	}
	if err := m.lay(f, args, kwargs); err != nil {
		return nil, err
	}
	if err := r.enterScope(f, m.def.enter); err != nil {
		return nil, err
	}
	if err := m.defaults(r, f); err != nil {
		return nil, err
	}
	made, _, err := capture(r, f, m.def.body)
	return made, err
}

// lay puts the arguments where the body finds them (Macro.__call__).
func (m *macro) lay(f *frame, args []Value, kwargs []kwarg) error {
	d := m.def
	for i, arg := range d.args {
		if i < len(args) {
			f.set(arg.ref, args[i])
			continue
		}
		var v Value
		if v, kwargs = takeKwarg(kwargs, arg.name); v != nil {
			f.set(arg.ref, v)
		}
	}
	if d.caller != nil {
		var v Value
		if v, kwargs = takeKwarg(kwargs, "caller"); !given(v) {
			v = &undefined{hint: "No caller defined"}
		}
		f.set(*d.caller, v)
	}
	return m.layRest(f, args, kwargs)
}

func (m *macro) layRest(f *frame, args []Value, kwargs []kwarg) error {
	d := m.def
	if d.kwargs != nil {
		rest := NewMap()
		for _, kw := range kwargs {
			rest.Set(kw.name, kw.value)
		}
		f.set(*d.kwargs, rest)
	} else if len(kwargs) > 0 {
		return fmt.Errorf("macro '%s' takes no keyword argument '%s'", d.name, kwargs[0].name)
	}
	if d.varargs != nil {
		f.set(*d.varargs, newTuple(args[min(len(args), len(d.args)):]...))
	} else if len(args) > len(d.args) {
		return fmt.Errorf("macro '%s' takes not more than %d argument(s)", d.name, len(d.args))
	}
	return nil
}

// defaults fills the arguments that were not given, in order: one may use those before it.
func (m *macro) defaults(r *run, f *frame) error {
	first := len(m.def.args) - len(m.def.defaults)
	for i, arg := range m.def.args {
		if f.get(arg.ref) != nil {
			continue
		}
		if i < first {
			f.set(arg.ref, &undefined{hint: fmt.Sprintf("parameter '%s' was not provided", arg.name)})
			continue
		}
		v, err := m.def.defaults[i-first].eval(r, f)
		if err != nil {
			return err
		}
		f.set(arg.ref, v)
	}
	return nil
}

// takeKwarg removes the argument called name; v is nil when there is none.
func takeKwarg(kwargs []kwarg, name string) (v Value, rest []kwarg) {
	for i, kw := range kwargs {
		if kw.name == name {
			return kw.value, append(append([]kwarg{}, kwargs[:i]...), kwargs[i+1:]...)
		}
	}
	return nil, kwargs
}

func addKwarg(kwargs []kwarg, kw kwarg) ([]kwarg, error) {
	for _, other := range kwargs {
		if other.name == kw.name {
			return nil, fmt.Errorf("got multiple values for keyword argument '%s'", kw.name)
		}
	}
	return append(kwargs, kw), nil
}

// spread adds the arguments of a ** to kwargs.
func (a *arguments) spread(r *run, f *frame, kwargs []kwarg) ([]kwarg, error) {
	v, err := a.dynKwargs.eval(r, f)
	if err != nil {
		return nil, err
	}
	m, ok := v.(*Map)
	if !ok {
		return nil, fmt.Errorf("argument after ** must be a mapping, not %s", v.typeName())
	}
	if err := r.items(m.Len()); err != nil {
		return nil, err
	}
	for i, key := range m.keys {
		name, ok := text(key)
		if !ok {
			return nil, fmt.Errorf("keywords must be strings")
		}
		if kwargs, err = addKwarg(kwargs, kwarg{name, m.values[i]}); err != nil {
			return nil, err
		}
	}
	return kwargs, nil
}

func (s *macroStmt) exec(r *run, f *frame, _ *buffer) (flow, error) {
	f.set(s.ref, &macro{s.def, f})
	return goOn, r.items(2)
}

func (s *callStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	caller := &macro{s.def, f}
	var v Value
	var err error
	if s.call == nil {
		v, err = call(r, caller, nil, nil)
	} else {
		v, err = s.call.evalWith(r, f, kwarg{"caller", caller})
	}
	if err == nil {
		err = printText(r, out, v)
	}
	return goOn, onLine(s.line, err)
}
