package jinja

import "fmt"

// mapMethods are those of dict that do not change it.
func mapMethods() []*function {
	self := []param{need("self")}
	look := func(kind viewKind) body {
		return func(_ *run, a []Value) (Value, error) { return &view{a[0].(*Map), kind}, nil }
	}
	return []*function{
		{name: "keys", params: self, posOnly: 1, body: look(viewKeys)},
		{name: "values", params: self, posOnly: 1, body: look(viewValues)},
		{name: "items", params: self, posOnly: 1, body: look(viewItems)},
		{name: "get", params: []param{need("self"), need("key"), opt("default", none{})}, posOnly: 3, body: mapGet},
		{name: "copy", params: self, posOnly: 1, body: copyMap},
		{name: "fromkeys", params: []param{need("self"), need("iterable"), opt("value", none{})}, posOnly: 3,
			body: func(r *run, a []Value) (Value, error) { return fromKeys(r, a[1:]) }},
	}
}

func mapGet(_ *run, a []Value) (Value, error) {
	hash, err := hashKey(a[1])
	if err != nil {
		return nil, err
	}
	if v, ok := a[0].(*Map).lookup(hash); ok {
		return v, nil
	}
	return a[2], nil
}

func copyMap(r *run, a []Value) (Value, error) {
	m := a[0].(*Map)
	if err := r.items(4 * m.Len()); err != nil {
		return nil, err
	}
	return m.clone(), nil
}

// itemMethods are index and count of a list or tuple.
func itemMethods(kind string) []*function {
	return []*function{
		{name: "count", params: []param{need("self"), need("value")}, posOnly: 2, body: countItems},
		{name: "index", params: []param{need("self"), need("value"), opt("start", integer(0)), opt("stop", none{})}, posOnly: 4,
			body: func(r *run, a []Value) (Value, error) { return indexItem(r, a, kind) }},
	}
}

func itemsOf(v Value) []Value {
	if t, ok := v.(*tuple); ok {
		return t.items
	}
	return v.(*list).items
}

func countItems(r *run, a []Value) (Value, error) {
	n := 0
	for _, item := range itemsOf(a[0]) {
		same, err := identicalOrEqual(r, item, a[1])
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return integer(n), nil
}

func indexItem(r *run, a []Value, kind string) (Value, error) {
	items := itemsOf(a[0])
	b, err := sliceBounds(a[2], a[3], nil, len(items))
	if err != nil {
		return nil, err
	}
	for i := b.start; i < b.stop; i++ {
		same, err := identicalOrEqual(r, items[i], a[1])
		if err != nil {
			return nil, err
		}
		if same {
			return integer(i), nil
		}
	}
	return nil, fmt.Errorf("%s.index(x): x not in %s", kind, kind)
}

// listMethods are what list has on top of those that does not change it.
func listMethods() []*function {
	return []*function{{name: "copy", params: []param{need("self")}, posOnly: 1, body: func(r *run, a []Value) (Value, error) {
		items, err := joinItems(r, itemsOf(a[0]), nil)
		return &list{items}, err
	}}}
}
