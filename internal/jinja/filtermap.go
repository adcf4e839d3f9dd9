package jinja

import (
	"errors"
	"fmt"
)

// mapFilter is map(attribute=...) or map('filter', ...).
func mapFilter(_ *run, args []Value, kwargs []kwarg) (Value, error) {
	if len(args) == 0 {
		return nil, errors.New("map() missing a required argument: 'value'")
	}
	return lazily(func(r *run) (iterator, error) {
		if !truth(args[0]) {
			return &indexed{}, nil
		}
		change, err := mapping(r, args[1:], kwargs)
		if err != nil {
			return nil, err
		}
		it, err := iterate(args[0])
		if err != nil {
			return nil, err
		}
		return newGenerator(func(r *run) (Value, bool, error) {
			item, ok, err := it.next(r)
			if !ok || err != nil {
				return nil, false, err
			}
			v, err := change(item)
			return v, true, err
		}), nil
	}), nil
}

// mapping is what map does to an item (prepare_map).
func mapping(r *run, args []Value, kwargs []kwarg) (func(Value) (Value, error), error) {
	attr, rest := takeKwarg(kwargs, "attribute")
	if len(args) == 0 && attr != nil {
		get, err := newGetter(r, attr)
		if err != nil {
			return nil, err
		}
		def, rest := takeKwarg(rest, "default")
		if given(def) {
			get.def = def
		}
		if len(rest) > 0 {
			return nil, fmt.Errorf("unexpected keyword argument '%s'", rest[0].name)
		}
		return get.of, nil
	}
	if len(args) == 0 {
		return nil, errors.New("map requires a filter argument")
	}
	return func(item Value) (Value, error) {
		return callNamed(r, r.lib.filters, "filter", args[0], item, args[1:], kwargs)
	}, nil
}

// callNamed runs the filter or test that a template names with a string.
func callNamed(r *run, known map[string]*function, kind string, name, item Value, args []Value, kwargs []kwarg) (Value, error) {
	s, _ := text(name)
	f, ok := known[s]
	if !ok && kind == "filter" && refusedFilters[s] {
		return nil, fmt.Errorf("filter '%s' is not supported", s)
	}
	if !ok {
		return nil, fmt.Errorf("no %s named %s", kind, shortRepr(name))
	}
	return call(r, f, append([]Value{item}, args...), kwargs)
}

// selectFilter is select, reject, selectattr or rejectattr.
func selectFilter(byAttribute, want bool) func(*run, []Value, []kwarg) (Value, error) {
	return func(_ *run, args []Value, kwargs []kwarg) (Value, error) {
		if len(args) == 0 {
			return nil, errors.New("missing a required argument: 'value'")
		}
		return lazily(func(r *run) (iterator, error) {
			if !truth(args[0]) {
				return &indexed{}, nil
			}
			test, err := selection(r, byAttribute, args[1:], kwargs)
			if err != nil {
				return nil, err
			}
			return filtered(args[0], func(r *run, item Value) (bool, error) {
				v, err := test(item)
				return err == nil && truth(v) == want, err
			})
		}), nil
	}
}

// selection is what select looks at in an item (prepare_select_or_reject).
func selection(r *run, byAttribute bool, args []Value, kwargs []kwarg) (func(Value) (Value, error), error) {
	get := getter{r: r}
	if byAttribute {
		if len(args) == 0 {
			return nil, errors.New("missing parameter for attribute name")
		}
		var err error
		if get, err = newGetter(r, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return get.of, nil
	}
	return func(item Value) (Value, error) {
		v, err := get.of(item)
		if err != nil {
			return nil, err
		}
		return callNamed(r, r.lib.tests, "test", args[0], v, args[1:], kwargs)
	}, nil
}

// batchFilter cuts a sequence into lists of linecount.
func batchFilter(_ *run, a []Value) (Value, error) {
	return lazily(func(r *run) (iterator, error) {
		n, err := wantInt(a[1])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("batch of %s items is not supported", shortRepr(a[1]))
		}
		it, err := iterate(a[0])
		if err != nil {
			return nil, err
		}
		return newGenerator(func(r *run) (Value, bool, error) { return batch(r, it, n, a[2]) }), nil
	}), nil
}

func batch(r *run, it iterator, n int, fill Value) (Value, bool, error) {
	l := &list{}
	for len(l.items) < n {
		item, ok, err := it.next(r)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			break
		}
		l.items = append(l.items, item)
	}
	if len(l.items) == 0 {
		return nil, false, nil
	}
	if given(fill) {
		if err := r.items(n); err != nil {
			return nil, false, err
		}
		for len(l.items) < n {
			l.items = append(l.items, fill)
		}
	}
	return l, true, r.items(len(l.items))
}

// sliceFilter cuts a sequence into a number of lists of nearly one length.
func sliceFilter(_ *run, a []Value) (Value, error) {
	return lazily(func(r *run) (iterator, error) {
		items, err := collect(r, a[0])
		if err != nil {
			return nil, err
		}
		n, err := wantInt(a[1])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errors.New("integer division or modulo by zero")
		}
		if n > maxRange {
			return nil, fmt.Errorf("%d slices are over the limit of %d", n, maxRange)
		}
		return &indexed{n: max(n, 0), at: func(i int) Value { return oneSlice(items, n, i, a[2]) }}, nil
	}), nil
}

func oneSlice(items []Value, n, i int, fill Value) Value {
	size, longer := len(items)/n, len(items)%n
	start := i*size + min(i, longer)
	end := start + size
	if i < longer {
		end++
	}
	part := append([]Value{}, items[start:end]...)
	if given(fill) && i >= longer {
		part = append(part, fill)
	}
	return &list{part}
}
