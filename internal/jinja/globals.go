package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// globals are the names a template finds without being given them.
func globals() map[string]Value {
	g := map[string]Value{
		"range":           &function{name: "range", variadic: makeRange},
		"dict":            &dictType{},
		"namespace":       &function{name: "namespace", variadic: makeNamespace},
		"raise_exception": &function{name: "raise_exception", params: []param{need("message")}, body: raise},
		"strftime_now":    &function{name: "strftime_now", params: []param{need("format")}, body: strftimeNow},
	}
	for _, name := range []string{"lipsum", "cycler", "joiner"} {
		g[name] = unsupported("function", name)
	}
	return g
}

func raise(r *run, a []Value) (Value, error) {
	s, err := r.str(a[0])
	if err != nil {
		return nil, err
	}
	return nil, errors.New(s)
}

func makeRange(_ *run, args []Value, kwargs []kwarg) (Value, error) {
	if len(args) < 1 || len(args) > 3 || len(kwargs) > 0 {
		return nil, errors.New("range expected 1 to 3 arguments")
	}
	n := [3]int64{0, 0, 1}
	for i, arg := range args {
		v, err := wantInt(arg)
		if err != nil {
			return nil, err
		}
		if v > 1<<40 || v < -1<<40 {
			return nil, fmt.Errorf("range bound %d is not supported", v)
		}
		n[i] = int64(v)
	}
	if len(args) == 1 {
		n[0], n[1] = 0, n[0]
	}
	start, stop, step := n[0], n[1], n[2]
	if step == 0 {
		return nil, errors.New("range() arg 3 must not be zero")
	}
	count := int64(bounds{int(start), int(stop), int(step)}.count())
	if count > maxRange {
		return nil, fmt.Errorf("range too big: the sandbox blocks ranges larger than %d", maxRange)
	}
	return &rangeValue{start: start, stop: stop, step: step, n: int(count)}, nil
}

// dictType is the dict of transformers: it makes dicts and has fromkeys.
type dictType struct{}

func (*dictType) typeName() string { return "TemplateDict" }

func (*dictType) call(r *run, args []Value, kwargs []kwarg) (Value, error) {
	return makeDict(r, args, kwargs)
}

func (*dictType) attribute(_ *run, name string) (Value, bool, error) {
	if name != "fromkeys" {
		return nil, false, nil
	}
	params := []param{need("iterable"), opt("value", none{})}
	return &function{name: name, params: params, posOnly: 2, body: fromKeys}, true, nil
}

func fromKeys(r *run, a []Value) (Value, error) {
	keys, err := collect(r, a[0])
	if err != nil {
		return nil, err
	}
	m := NewMap()
	for _, key := range keys {
		if err := m.set(key, a[1]); err != nil {
			return nil, err
		}
	}
	return m, r.items(4 * len(keys))
}

// makeDict is Python's dict(): from a mapping or pairs, then keyword arguments.
func makeDict(r *run, args []Value, kwargs []kwarg) (*Map, error) {
	if len(args) > 1 {
		return nil, fmt.Errorf("dict expected at most 1 argument, got %d", len(args))
	}
	m := NewMap()
	if len(args) == 1 {
		if err := fillDict(r, m, args[0]); err != nil {
			return nil, err
		}
	}
	for _, kw := range kwargs {
		m.Set(kw.name, kw.value)
	}
	return m, r.items(4 * len(kwargs))
}

func fillDict(r *run, m *Map, from Value) error {
	switch from := from.(type) {
	case *Map:
		*m = *from.clone()
		return r.items(4 * m.Len())
	case *undefined:
		return from.err() // Python asks it for keys()
	}
	pairs, err := collect(r, from)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		items, err := collect(r, pair)
		if err != nil {
			return errors.New("cannot convert dictionary update sequence element to a sequence")
		}
		if len(items) != 2 {
			return fmt.Errorf("dictionary update sequence element has length %d; 2 is required", len(items))
		}
		if err := m.set(items[0], items[1]); err != nil {
			return err
		}
	}
	return r.items(4 * len(pairs))
}

func makeNamespace(r *run, args []Value, kwargs []kwarg) (Value, error) {
	m, err := makeDict(r, args, kwargs)
	if err != nil {
		return nil, err
	}
	for _, key := range m.keys {
		if err := checkNamespaceName(key); err != nil {
			return nil, err
		}
	}
	return &namespace{m}, nil
}

func (ns *namespace) set(name string, v Value) error {
	if err := checkNamespaceName(str(name)); err != nil {
		return err
	}
	ns.attrs.Set(name, v)
	return nil
}

// checkNamespaceName is the rule transformers adds to jinja2's namespace.
func checkNamespaceName(key Value) error {
	if name, ok := text(key); ok && strings.HasPrefix(name, "_") {
		return fmt.Errorf("chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'", name)
	}
	return nil
}
