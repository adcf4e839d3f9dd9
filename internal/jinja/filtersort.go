package jinja

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

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
