package jinja

import (
	"fmt"
	"unicode/utf8"
)

// iterator gives one item a call until ok is false.
type iterator interface {
	next(r *run) (v Value, ok bool, err error)
}

// generator is a Python generator: it may be walked once, by whoever comes first.
type generator struct {
	name string // its type, for messages
	step func(r *run) (Value, bool, error)
}

func (g *generator) typeName() string { return g.name }

// next bounds generators over generators, which are calls in calls.
func (g *generator) next(r *run) (Value, bool, error) {
	if err := r.enter(); err != nil {
		return nil, false, err
	}
	defer r.leave()
	return g.step(r)
}

func newGenerator(step func(r *run) (Value, bool, error)) *generator {
	return &generator{"generator", step}
}

// lazily is a generator that does nothing, and fails at nothing, before its first item is asked for.
func lazily(start func(r *run) (iterator, error)) *generator {
	var it iterator
	return newGenerator(func(r *run) (Value, bool, error) {
		if it == nil {
			var err error
			if it, err = start(r); err != nil {
				return nil, false, err
			}
		}
		return it.next(r)
	})
}

// filtered walks the items of v that keep keeps.
func filtered(v Value, keep func(r *run, item Value) (bool, error)) (iterator, error) {
	it, err := iterate(v)
	if err != nil {
		return nil, err
	}
	return newGenerator(func(r *run) (Value, bool, error) {
		for {
			item, ok, err := it.next(r)
			if !ok || err != nil {
				return nil, false, err
			}
			if ok, err := keep(r, item); ok || err != nil {
				return item, ok, err
			}
		}
	}), nil
}

// rangeValue is Python's range.
type rangeValue struct {
	start, step int64
	n           int
	stop        int64 // as it was given, for repr
}

func (*rangeValue) typeName() string { return "range" }

func (v *rangeValue) at(i int) Value { return integer(v.start + int64(i)*v.step) }

func (v *rangeValue) same(o *rangeValue) bool {
	return v.n == o.n && (v.n == 0 || v.start == o.start && (v.n == 1 || v.step == o.step))
}

// indexed walks anything with places 0..n-1.
type indexed struct {
	at   func(i int) Value
	i, n int
}

func (it *indexed) next(r *run) (Value, bool, error) {
	if it.i >= it.n {
		return nil, false, nil
	}
	it.i++
	return it.at(it.i - 1), true, r.step(1)
}

// runes walks a string by code points.
type runes struct{ rest string }

func (it *runes) next(r *run) (Value, bool, error) {
	if it.rest == "" {
		return nil, false, nil
	}
	_, n := utf8.DecodeRuneInString(it.rest)
	c := it.rest[:n]
	it.rest = it.rest[n:]
	return str(c), true, r.step(1)
}

func overItems(items []Value) *indexed {
	return &indexed{at: func(i int) Value { return items[i] }, n: len(items)}
}

// iterate is Python's iter().
func iterate(v Value) (iterator, error) {
	switch v := v.(type) {
	case *list:
		return overItems(v.items), nil
	case *tuple:
		return overItems(v.items), nil
	case *Map:
		return overItems(v.keys), nil
	case *view:
		return &indexed{at: v.at, n: v.m.Len()}, nil
	case *rangeValue:
		return &indexed{at: v.at, n: v.n}, nil
	case str:
		return &runes{string(v)}, nil
	case markup:
		return &runes{string(v)}, nil
	case *undefined:
		return &indexed{}, nil
	case *generator:
		return v, nil
	case *loop:
		return &generator{"loop", func(r *run) (Value, bool, error) {
			item, ok, err := v.advance(r)
			return newTuple(item, v), ok, err
		}}, nil
	}
	return nil, fmt.Errorf("'%s' object is not iterable", v.typeName())
}

// collect is Python's list(v), as a fresh slice.
func collect(r *run, v Value) ([]Value, error) {
	it, err := iterate(v)
	if err != nil {
		return nil, err
	}
	var items []Value
	for {
		item, ok, err := it.next(r)
		if err != nil {
			return nil, err
		}
		if !ok {
			return items, nil
		}
		if err := r.alloc(itemBytes); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
}

// reversed is Python's reversed(); ok is false for what has no reverse.
func reversed(v Value) (it iterator, ok bool) {
	var at func(int) Value
	n, _ := length(v)
	switch v := v.(type) {
	case *list:
		at = func(i int) Value { return v.items[i] }
	case *tuple:
		at = func(i int) Value { return v.items[i] }
	case *Map:
		at = func(i int) Value { return v.keys[i] }
	case *view:
		at = v.at
	case *rangeValue:
		at = v.at
	case *undefined:
	case str, markup:
		s, _ := text(v)
		chars := []rune(s)
		at = func(i int) Value { return like(v, string(chars[i])) }
	default:
		return nil, false
	}
	return &indexed{at: func(i int) Value { return at(n - 1 - i) }, n: n}, true
}
