package jinja

import (
	"errors"
	"fmt"
	"sort"
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
		if err := print(r, out, v); err != nil {
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

// keyed is an item with what it is sorted by.
type keyed struct{ key, item Value }

// sortKeyed sorts stably; less of any two keys that Python cannot order is an error.
func sortKeyed(r *run, items []keyed, reverse bool) (err error) {
	sort.SliceStable(items, func(i, j int) bool {
		if err != nil {
			return false
		}
		a, b := items[i].key, items[j].key
		if reverse {
			a, b = b, a
		}
		var before bool
		before, err = less(r, "<", a, b, false)
		return before
	})
	return err
}

func keyAll(items []Value, key func(Value) (Value, error)) ([]keyed, error) {
	out := make([]keyed, len(items))
	for i, item := range items {
		k, err := key(item)
		if err != nil {
			return nil, err
		}
		out[i] = keyed{k, item}
	}
	return out, nil
}

func dictSort(r *run, a []Value) (Value, error) {
	by, _ := text(a[2])
	if by != "key" && by != "value" {
		return nil, errors.New(`you can only sort by either "key" or "value"`)
	}
	m, ok := a[0].(*Map)
	if !ok {
		if u, isUndefined := a[0].(*undefined); isUndefined {
			return nil, u.err()
		}
		return nil, fmt.Errorf("'%s' object has no attribute 'items'", a[0].typeName())
	}
	pairs, err := collect(r, &view{m, viewItems})
	if err != nil {
		return nil, err
	}
	fold := getter{r: r, fold: !truth(a[1])}
	items, err := keyAll(pairs, func(pair Value) (Value, error) {
		place := map[string]int{"key": 0, "value": 1}[by]
		return fold.of(pair.(*tuple).items[place])
	})
	if err != nil {
		return nil, err
	}
	return sortedList(r, items, a[3])
}

// sortedList is Python's sorted(), which takes an int for reverse and nothing else.
func sortedList(r *run, items []keyed, reverse Value) (Value, error) {
	turn, err := wantInt(reverse)
	if err != nil {
		return nil, err
	}
	if err := sortKeyed(r, items, turn != 0); err != nil {
		return nil, err
	}
	out := &list{make([]Value, len(items))}
	for i, item := range items {
		out.items[i] = item.item
	}
	return out, nil
}

func sortFilter(r *run, a []Value) (Value, error) {
	var getters []getter
	split := []Value{a[3]}
	if s, ok := text(a[3]); ok {
		split = nil
		for _, one := range strings.Split(s, ",") {
			split = append(split, str(one))
		}
	}
	for _, one := range split {
		g, err := newGetter(r, one)
		if err != nil {
			return nil, err
		}
		g.fold = !truth(a[2])
		getters = append(getters, g)
	}
	items, err := collect(r, a[0])
	if err != nil {
		return nil, err
	}
	keys, err := keyAll(items, func(item Value) (Value, error) {
		k := &list{make([]Value, len(getters))}
		for i, g := range getters {
			if k.items[i], err = g.of(item); err != nil {
				return nil, err
			}
		}
		return k, r.items(len(getters))
	})
	if err != nil {
		return nil, err
	}
	return sortedList(r, keys, a[1])
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

func groupBy(r *run, a []Value) (Value, error) {
	get, err := newGetter(r, a[1])
	if err != nil {
		return nil, err
	}
	if given(a[2]) {
		get.def = a[2]
	}
	plain := get
	get.fold = !truth(a[3])
	items, err := collect(r, a[0])
	if err != nil {
		return nil, err
	}
	keys, err := keyAll(items, get.of)
	if err != nil {
		return nil, err
	}
	if err := sortKeyed(r, keys, false); err != nil {
		return nil, err
	}
	out := &list{}
	var last Value
	for _, one := range keys {
		same := false
		if last != nil {
			if same, err = identicalOrEqual(r, last, one.key); err != nil {
				return nil, err
			}
		}
		if !same {
			name, err := plain.of(one.item)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, &tuple{[]Value{name, &list{}}, []string{"grouper", "list"}})
			last = one.key
		}
		group := out.items[len(out.items)-1].(*tuple).items[1].(*list)
		group.items = append(group.items, one.item)
	}
	return out, nil
}
