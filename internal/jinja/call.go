package jinja

import (
	"errors"
	"fmt"
)

// callable is what can be called: functions, methods, macros.
type callable interface {
	Value
	call(r *run, args []Value, kwargs []kwarg) (Value, error)
}

type kwarg struct {
	name  string
	value Value
}

func call(r *run, f Value, args []Value, kwargs []kwarg) (Value, error) {
	if u, ok := f.(*undefined); ok {
		return nil, u.err()
	}
	c, ok := f.(callable)
	if !ok {
		return nil, fmt.Errorf("'%s' object is not callable", f.typeName())
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.leave()
	return c.call(r, args, kwargs)
}

// param is one parameter of a builtin; without a default it must be given.
type param struct {
	name string
	def  Value
}

func need(name string) param           { return param{name, nil} }
func opt(name string, def Value) param { return param{name, def} }

// body runs a builtin on one value per parameter.
type body func(r *run, a []Value) (Value, error)

// function is a builtin: a filter, a test, a global or, its receiver first, a method.
type function struct {
	name    string
	params  []param
	posOnly int // how many of params cannot be given by name
	body    body
	// variadic replaces params and body where Python has *args and **kwargs.
	variadic func(r *run, args []Value, kwargs []kwarg) (Value, error)
}

func (*function) typeName() string { return "function" }

func (f *function) call(r *run, args []Value, kwargs []kwarg) (Value, error) {
	if f.variadic != nil {
		return f.variadic(r, args, kwargs)
	}
	bound, err := f.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	return f.body(r, bound)
}

// bind lays arguments out as Python does: by place, then by name, then defaults.
func (f *function) bind(args []Value, kwargs []kwarg) ([]Value, error) {
	if len(args) > len(f.params) {
		return nil, fmt.Errorf("%s() takes %d arguments but %d were given", f.name, len(f.params), len(args))
	}
	bound := make([]Value, len(f.params))
	copy(bound, args)
	for _, kw := range kwargs {
		i := f.find(kw.name)
		if i < 0 {
			return nil, fmt.Errorf("%s() got an unexpected keyword argument '%s'", f.name, kw.name)
		}
		if bound[i] != nil {
			return nil, fmt.Errorf("%s() got multiple values for argument '%s'", f.name, kw.name)
		}
		bound[i] = kw.value
	}
	for i, p := range f.params {
		if bound[i] == nil {
			bound[i] = p.def
		}
		if bound[i] == nil {
			return nil, fmt.Errorf("%s() missing a required argument: '%s'", f.name, p.name)
		}
	}
	return bound, nil
}

func (f *function) find(name string) int {
	for i, p := range f.params {
		if p.name == name && i >= f.posOnly {
			return i
		}
	}
	return -1
}

// method is a function bound to its receiver.
type method struct {
	recv Value
	fn   *function
}

func (*method) typeName() string { return "builtin_function_or_method" }

func (m *method) call(r *run, args []Value, kwargs []kwarg) (Value, error) {
	return m.fn.call(r, append([]Value{m.recv}, args...), kwargs)
}

// library is every name a template can use without being given it.
type library struct {
	filters map[string]*function
	tests   map[string]*function
	globals map[string]Value
	methods map[string]map[string]*function // by type name
}

func newLibrary() *library {
	l := &library{
		filters: table(textFilters(), sequenceFilters(), valueFilters()),
		tests:   table(typeTests(), valueTests()),
		globals: globals(),
		methods: map[string]map[string]*function{
			"str":   table(searchMethods(), shapeMethods(), splitMethods(), caseMethods()),
			"dict":  table(mapMethods()),
			"list":  table(itemMethods("list"), listMethods()),
			"tuple": table(itemMethods("tuple")),
		},
	}
	l.methods["Markup"] = l.methods["str"]
	return l
}

func table(groups ...[]*function) map[string]*function {
	t := map[string]*function{}
	for _, group := range groups {
		for _, f := range group {
			t[f.name] = f
		}
	}
	return t
}

// alias is f under another name.
func alias(name string, f *function) *function {
	c := *f
	c.name = name
	return &c
}

// unsupported is a function that jinja2 or Python has and this package does not.
func unsupported(kind, name string) *function {
	return &function{name: name, variadic: func(*run, []Value, []kwarg) (Value, error) {
		return nil, fmt.Errorf("%s '%s' is not supported", kind, name)
	}}
}

// argument conversions, with the errors Python would give

func wantText(v Value) (string, error) {
	if u, ok := v.(*undefined); ok {
		return "", u.err()
	}
	s, ok := text(v)
	if !ok {
		return "", fmt.Errorf("expected str, not %s", v.typeName())
	}
	return s, nil
}

func wantInt(v Value) (int, error) {
	if _, ok := v.(*bigInt); ok {
		return 0, errors.New("int too large to convert to C ssize_t")
	}
	i, ok := asInt(v)
	if !ok {
		return 0, fmt.Errorf("'%s' object cannot be interpreted as an integer", v.typeName())
	}
	return int(i), nil
}
