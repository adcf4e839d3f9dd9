package jinja

import (
	"fmt"
	"strings"
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
