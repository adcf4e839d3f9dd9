package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// sequenceFilters are the filters on what can be iterated.
func sequenceFilters() []*function {
	value, attr, sensitive := need("value"), opt("attribute", none{}), opt("case_sensitive", boolean(false))
	return []*function{
		{name: "first", params: []param{need("seq")}, body: firstFilter},
		{name: "last", params: []param{need("seq")}, body: lastFilter},
		{name: "list", params: []param{value}, body: listFilter},
		{name: "join", params: []param{value, opt("d", str("")), attr}, body: joinFilter},
		{name: "reverse", params: []param{value}, body: reverseFilter},
		{name: "items", params: []param{value}, body: itemsFilter},
		{name: "dictsort", params: []param{value, sensitive, opt("by", str("key")), opt("reverse", boolean(false))}, body: dictSort},
		{name: "sort", params: []param{value, opt("reverse", boolean(false)), sensitive, attr}, body: sortFilter},
		{name: "unique", params: []param{value, sensitive, attr}, body: uniqueFilter},
		{name: "min", params: []param{value, sensitive, attr}, body: extremeFilter("<")},
		{name: "max", params: []param{value, sensitive, attr}, body: extremeFilter(">")},
		{name: "sum", params: []param{need("iterable"), attr, opt("start", integer(0))}, body: sumFilter},
		{name: "groupby", params: []param{value, need("attribute"), opt("default", none{}), sensitive}, body: groupBy},
		{name: "batch", params: []param{value, need("linecount"), opt("fill_with", none{})}, body: batchFilter},
		{name: "slice", params: []param{value, need("slices"), opt("fill_with", none{})}, body: sliceFilter},
		{name: "map", variadic: mapFilter},
		{name: "select", variadic: selectFilter(false, true)},
		{name: "reject", variadic: selectFilter(false, false)},
		{name: "selectattr", variadic: selectFilter(true, true)},
		{name: "rejectattr", variadic: selectFilter(true, false)},
	}
}

func firstFilter(r *run, a []Value) (Value, error) {
	it, err := iterate(a[0])
	if err != nil {
		return nil, err
	}
	v, ok, err := it.next(r)
	if !ok && err == nil {
		return &undefined{hint: "No first item, sequence was empty."}, nil
	}
	return v, err
}

func lastFilter(r *run, a []Value) (Value, error) {
	it, ok := reversed(a[0])
	if !ok {
		return nil, fmt.Errorf("'%s' object is not reversible", a[0].typeName())
	}
	v, ok, err := it.next(r)
	if !ok && err == nil {
		return &undefined{hint: "No last item, sequence was empty."}, nil
	}
	return v, err
}

func listFilter(r *run, a []Value) (Value, error) {
	items, err := collect(r, a[0])
	return &list{items}, err
}

func joinFilter(r *run, a []Value) (Value, error) {
	it, err := iterate(a[0])
	if err != nil {
		return nil, err
	}
	get := getter{r: r}
	if given(a[2]) {
		if get, err = newGetter(r, a[2]); err != nil {
			return nil, err
		}
	}
	sep, err := r.str(a[1])
	if err != nil {
		return nil, err
	}
	out := &buffer{}
	for n := 0; ; n++ {
		v, ok, err := it.next(r)
		if err != nil {
			return nil, err
		}
		if !ok {
			return str(out.String()), nil
		}
		if v, err = get.of(v); err != nil {
			return nil, err
		}
		if n > 0 {
			if err := out.write(r, sep); err != nil {
				return nil, err
			}
		}
		if err := printValue(r, out, v); err != nil {
			return nil, err
		}
	}
}

func reverseFilter(r *run, a []Value) (Value, error) {
	if s, ok := text(a[0]); ok {
		chars := []rune(s)
		for i, j := 0, len(chars)-1; i < j; i, j = i+1, j-1 {
			chars[i], chars[j] = chars[j], chars[i]
		}
		return like(a[0], string(chars)), r.alloc(len(s))
	}
	if it, ok := reversed(a[0]); ok {
		return &generator{"reversed", it.next}, nil
	}
	items, err := collect(r, a[0])
	if err != nil {
		return nil, err
	}
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return &list{items}, nil
}

func itemsFilter(_ *run, a []Value) (Value, error) {
	return lazily(func(*run) (iterator, error) {
		switch v := a[0].(type) {
		case *undefined:
			return &indexed{}, nil
		case *Map:
			return iterate(&view{v, viewItems})
		}
		return nil, errors.New("can only get item pairs from a mapping")
	}), nil
}

// getter finds an attribute such as "a.b.0" of items, each part as item[part] does.
type getter struct {
	r     *run
	parts []Value
	def   Value // stands in for an undefined part, unless nil
	fold  bool  // strings in lower case
}

func newGetter(r *run, attribute Value) (getter, error) {
	g := getter{r: r}
	s, ok := text(attribute)
	if !ok {
		if given(attribute) {
			g.parts = []Value{attribute}
		}
		return g, nil
	}
	for _, part := range strings.Split(s, ".") {
		v := Value(str(part))
		if n, err := strconv.ParseInt(part, 10, 64); err == nil && strings.Trim(part, "0123456789") == "" {
			v = integer(n)
		}
		g.parts = append(g.parts, v)
	}
	return g, r.scan(len(s))
}

func (g getter) of(item Value) (Value, error) {
	var err error
	for _, part := range g.parts {
		if item, err = getItem(g.r, item, part); err != nil {
			return nil, err
		}
		if _, ok := item.(*undefined); ok && g.def != nil {
			item = g.def
		}
	}
	if s, ok := text(item); ok && g.fold {
		return str(lowerCase(s)), g.r.scan(len(s))
	}
	return item, nil
}

func uniqueFilter(_ *run, a []Value) (Value, error) {
	return lazily(func(r *run) (iterator, error) {
		get, err := newGetter(r, a[2])
		if err != nil {
			return nil, err
		}
		get.fold = !truth(a[1])
		seen := map[any]bool{}
		return filtered(a[0], func(r *run, item Value) (bool, error) {
			key, err := get.of(item)
			if err != nil {
				return false, err
			}
			hash, err := hashKey(key)
			if err != nil || seen[hash] {
				return false, err
			}
			seen[hash] = true
			return true, r.items(4)
		})
	}), nil
}

// extremeFilter keeps the first item whose key no other is op than.
func extremeFilter(op string) body {
	return func(r *run, a []Value) (Value, error) {
		items, err := collect(r, a[0])
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return &undefined{hint: "No aggregated item, sequence was empty."}, nil
		}
		get, err := newGetter(r, a[2])
		if err != nil {
			return nil, err
		}
		get.fold = !truth(a[1])
		keys, err := keyAll(items, get.of)
		if err != nil {
			return nil, err
		}
		best := keys[0]
		for _, one := range keys[1:] {
			better, err := compare(r, op, one.key, best.key)
			if err != nil {
				return nil, err
			}
			if better {
				best = one
			}
		}
		return best.item, nil
	}
}

func sumFilter(r *run, a []Value) (Value, error) {
	if _, ok := text(a[2]); ok {
		return nil, errors.New("sum() can't sum strings [use ''.join(seq) instead]")
	}
	get, err := newGetter(r, a[1])
	if err != nil {
		return nil, err
	}
	it, err := iterate(a[0])
	if err != nil {
		return nil, err
	}
	total := a[2]
	for {
		v, ok, err := it.next(r)
		if !ok || err != nil {
			return total, err
		}
		if v, err = get.of(v); err != nil {
			return nil, err
		}
		if total, err = binary(r, "+", total, v); err != nil {
			return nil, err
		}
	}
}
