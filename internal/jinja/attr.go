package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// getAttr is obj.name: the attribute first, then the item, then undefined.
func getAttr(r *run, obj Value, name string) (Value, error) {
	if u, ok := obj.(*undefined); ok && !objectAttributes[name] {
		return nil, u.err()
	}
	v, ok, err := attribute(r, obj, name)
	if ok || err != nil {
		return v, err
	}
	if m, isMap := obj.(*Map); isMap {
		if v, ok := m.Get(name); ok {
			return v, nil
		}
	}
	return &undefined{obj: obj, name: str(name)}, nil
}

// getItem is obj[key]: the item first, then the attribute, then undefined.
func getItem(r *run, obj, key Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.err()
	}
	v, err := subscript(r, obj, key)
	if v != nil || err != nil {
		return v, err
	}
	if name, ok := text(key); ok {
		v, ok, err := attribute(r, obj, name)
		if ok || err != nil {
			return v, err
		}
	}
	return &undefined{obj: obj, name: key}, nil
}

// subscript is Python's obj[key]; it gives nil where Python raises TypeError or LookupError.
func subscript(r *run, obj, key Value) (Value, error) {
	switch obj := obj.(type) {
	case *Map:
		hash, err := hashKey(key)
		if err != nil {
			return nil, nil
		}
		v, ok := obj.lookup(hash)
		if !ok {
			return nil, nil
		}
		return v, nil
	case *list:
		if i, ok := index(key, len(obj.items)); ok {
			return obj.items[i], nil
		}
	case *tuple:
		if i, ok := index(key, len(obj.items)); ok {
			return obj.items[i], nil
		}
	case *rangeValue:
		if i, ok := index(key, obj.n); ok {
			return obj.at(i), nil
		}
	case str, markup:
		s, _ := text(obj)
		if i, ok := index(key, runeCount(s)); ok {
			return like(obj, runeAt(s, i)), r.scan(len(s))
		}
	}
	return nil, nil
}

// index turns a Python index into 0..n-1.
func index(key Value, n int) (int, bool) {
	i, ok := asInt(key)
	if ok && i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

// attribute is Python's getattr behind the sandbox: ok is false when there is no such attribute,
// and what is unsafe comes back as an undefined that fails when used.
func attribute(r *run, obj Value, name string) (v Value, ok bool, err error) {
	if ns, isNS := obj.(*namespace); isNS {
		if v, ok := ns.attrs.Get(name); ok {
			return v, true, nil
		}
		return nil, false, nil
	}
	if strings.HasPrefix(name, "__") && objectAttributes[name] || unsafeAttribute(obj, name) {
		hint := fmt.Sprintf("access to attribute '%s' of '%s' object is unsafe.", name, obj.typeName())
		return &undefined{hint: hint, obj: obj, name: str(name)}, true, nil
	}
	if own, has := obj.(interface {
		attribute(r *run, name string) (Value, bool, error)
	}); has {
		v, ok, err := own.attribute(r, name)
		if ok || err != nil {
			return v, ok, err
		}
	}
	m, ok := r.lib.methods[obj.typeName()][name]
	if !ok {
		return nil, false, otherAttribute(obj, name)
	}
	return &method{obj, m}, true, nil
}

// attribute gives a group of groupby its names.
func (t *tuple) attribute(_ *run, name string) (Value, bool, error) {
	for i, field := range t.fields {
		if field == name {
			return t.items[i], true, nil
		}
	}
	return nil, false, nil
}

// objectAttributes are the double-underscore names that every Python object has; the sandbox
// hides them all. (A container's own, such as __len__, are hidden too.)
var objectAttributes = nameSet(`__class__ __delattr__ __dir__ __doc__ __eq__ __format__ __ge__
	__getattribute__ __getstate__ __gt__ __hash__ __init__ __init_subclass__ __le__ __lt__ __ne__
	__new__ __reduce__ __reduce_ex__ __repr__ __setattr__ __sizeof__ __str__ __subclasshook__
	__len__ __getitem__ __contains__ __iter__`)

var mutators = map[string]map[string]bool{
	"dict": nameSet("clear pop popitem setdefault update"),
	"list": nameSet("append clear pop reverse insert sort extend remove"),
}

// unsafeAttribute reports the methods that would change a list or dict.
func unsafeAttribute(obj Value, name string) bool { return mutators[obj.typeName()][name] }

// otherAttribute refuses, by name, attributes that Python has and this package does not.
func otherAttribute(obj Value, name string) error {
	if unsupportedAttributes[obj.typeName()][name] {
		return fmt.Errorf("attribute '%s' of '%s' object is not supported", name, obj.typeName())
	}
	return nil
}

var unsupportedAttributes = map[string]map[string]bool{
	"int":         nameSet("real imag numerator denominator conjugate bit_length bit_count to_bytes from_bytes as_integer_ratio"),
	"bool":        nameSet("real imag numerator denominator conjugate bit_length bit_count to_bytes from_bytes as_integer_ratio"),
	"float":       nameSet("real imag conjugate as_integer_ratio fromhex hex is_integer"),
	"range":       nameSet("start stop step count index"),
	"dict_keys":   nameSet("isdisjoint mapping"),
	"dict_items":  nameSet("isdisjoint mapping"),
	"dict_values": nameSet("mapping"),
	"generator":   nameSet("send throw close gi_frame gi_running gi_code gi_yieldfrom gi_suspended"),
	"Markup":      nameSet("unescape striptags escape"),
}

func nameSet(names string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}

// slice is obj[start:stop:step]; a nil bound was left out.
func slice(r *run, obj, start, stop, step Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.err()
	}
	s, isText := text(obj)
	var items []Value
	switch v := obj.(type) {
	case *list:
		items = v.items
	case *tuple:
		items = v.items
	case *rangeValue:
		return sliceRange(v, start, stop, step)
	default:
		if !isText {
			return nil, fmt.Errorf("'%s' object cannot be sliced", obj.typeName())
		}
	}
	n := len(items)
	if isText {
		n = runeCount(s)
	}
	b, err := sliceBounds(start, stop, step, n)
	if err != nil {
		return nil, err
	}
	if isText {
		return like(obj, sliceText(s, b)), r.alloc(len(s))
	}
	if err := r.items(b.count()); err != nil {
		return nil, err
	}
	out := make([]Value, 0, b.count())
	for i := range b.count() {
		out = append(out, items[b.start+i*b.step])
	}
	if _, ok := obj.(*tuple); ok {
		return &tuple{items: out}, nil
	}
	return &list{out}, nil
}

func sliceRange(v *rangeValue, start, stop, step Value) (Value, error) {
	b, err := sliceBounds(start, stop, step, v.n)
	if err != nil {
		return nil, err
	}
	return &rangeValue{
		start: v.start + int64(b.start)*v.step, stop: v.start + int64(b.stop)*v.step,
		step: v.step * int64(b.step), n: b.count(),
	}, nil
}

type bounds struct{ start, stop, step int }

func (b bounds) count() int {
	if b.step > 0 {
		return max(0, (b.stop-b.start+b.step-1)/b.step)
	}
	return max(0, (b.stop-b.start+b.step+1)/b.step)
}

// sliceBounds is slice.indices(n) of Python.
func sliceBounds(start, stop, step Value, n int) (b bounds, err error) {
	b.step = 1
	if err := sliceIndex(&b.step, step, -(n + 1), n+1); err != nil {
		return b, err
	}
	if b.step == 0 {
		return b, fmt.Errorf("slice step cannot be zero")
	}
	low, high := 0, n
	if b.step < 0 {
		low, high = -1, n-1
	}
	b.start, b.stop = low, high
	if b.step < 0 {
		b.start, b.stop = high, low
	}
	for _, bound := range []struct {
		to   *int
		from Value
	}{{&b.start, start}, {&b.stop, stop}} {
		if !given(bound.from) {
			continue
		}
		i := 0
		if err := sliceIndex(&i, bound.from, -2*(n+1), n+1); err != nil {
			return b, err
		}
		if i < 0 {
			i += n
		}
		*bound.to = min(max(i, low), high)
	}
	return b, nil
}

func given(v Value) bool {
	_, isNone := v.(none)
	return v != nil && !isNone
}

// sliceIndex sets to from a bound that is given, held to low..high: no slice sees further.
func sliceIndex(to *int, v Value, low, high int) error {
	if !given(v) {
		return nil
	}
	if b, ok := v.(*bigInt); ok {
		*to = high
		if b.n.Sign() < 0 {
			*to = low
		}
		return nil
	}
	i, ok := asInt(v)
	if !ok {
		return fmt.Errorf("slice indices must be integers or None, not %s", v.typeName())
	}
	*to = int(min(max(i, int64(low)), int64(high)))
	return nil
}

func sliceText(s string, b bounds) string {
	if b.step == 1 && b.count() > 0 {
		from := runeOffset(s, b.start)
		return s[from : from+runeOffset(s[from:], b.count())]
	}
	chars := []rune(s)
	var out strings.Builder
	for i := range b.count() {
		out.WriteRune(chars[b.start+i*b.step])
	}
	return out.String()
}

func runeCount(s string) int { return utf8.RuneCountInString(s) }

// runeOffset is the byte offset of code point i.
func runeOffset(s string, i int) int {
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

func runeAt(s string, i int) string {
	s = s[runeOffset(s, i):]
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}
