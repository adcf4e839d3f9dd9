package jinja

import (
	"fmt"
	"math"
	"strconv"
)

// Map is Python's dict: keys of any hashable kind in the order they were first set.
type Map struct {
	keys   []Value
	values []Value
	at     map[any]int // hashKey of a key to its place
}

func (*Map) typeName() string { return "dict" }

// NewMap makes an empty map.
func NewMap() *Map { return &Map{at: map[any]int{}} }

// Set gives key its value; a new key goes last. It must not be called once the map is rendered.
func (m *Map) Set(key string, v Value) { m.put(key, str(key), v) }

// Get returns the value of key, and whether there is one.
func (m *Map) Get(key string) (Value, bool) { return m.lookup(key) }

// Len returns the number of keys.
func (m *Map) Len() int { return len(m.keys) }

func (m *Map) lookup(hash any) (Value, bool) {
	i, ok := m.at[hash]
	if !ok {
		return nil, false
	}
	return m.values[i], true
}

func (m *Map) put(hash any, key, v Value) {
	if i, ok := m.at[hash]; ok {
		m.values[i] = v
		return
	}
	m.at[hash] = len(m.keys)
	m.keys = append(m.keys, key)
	m.values = append(m.values, v)
}

// set gives any hashable key its value.
func (m *Map) set(key, v Value) error {
	hash, err := hashKey(key)
	if err != nil {
		return err
	}
	m.put(hash, key, v)
	return nil
}

func (m *Map) clone() *Map {
	c := NewMap()
	for i, k := range m.keys {
		c.keys, c.values = append(c.keys, k), append(c.values, m.values[i])
	}
	for h, i := range m.at {
		c.at[h] = i
	}
	return c
}

// hashKey maps a value to a comparable Go value, equal ones to equal ones: 1, 1.0 and True are
// one key. A string's hash is the string itself.
func hashKey(v Value) (any, error) { return hashDeep(v, 0) }

func hashDeep(v Value, depth int) (any, error) {
	switch v := v.(type) {
	case str:
		return string(v), nil
	case markup:
		return string(v), nil
	case none:
		return noneHash{}, nil
	case boolean:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case integer:
		return int64(v), nil
	case *bigInt:
		return bigHash(v.n.String()), nil
	case float:
		return hashFloat(float64(v)), nil
	case *tuple:
		return hashTuple(v, depth+1)
	case *list, *Map:
		return nil, fmt.Errorf("unhashable type: '%s'", v.typeName())
	case *undefined:
		return undefinedHash{}, nil
	}
	return v, nil // by identity
}

type (
	bigHash       string
	tupleHash     string
	noneHash      struct{}
	undefinedHash struct{}
)

func hashFloat(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	if f == math.Trunc(f) && !math.IsInf(f, 0) {
		return bigHash(floatToBig(f).String())
	}
	return f
}

// hashTuple spells the hashes of the items out, each with its length so that none runs into the next.
func hashTuple(t *tuple, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("tuples nest over the limit of %d", maxDepth)
	}
	var spelled []byte
	for _, item := range t.items {
		h, err := hashDeep(item, depth)
		if err != nil {
			return nil, err
		}
		one := fmt.Sprintf("%T:%v", h, h)
		if _, byIdentity := h.(Value); byIdentity {
			one = fmt.Sprintf("%T:%p", h, h)
		}
		spelled = strconv.AppendInt(spelled, int64(len(one)), 10)
		spelled = append(append(spelled, ':'), one...)
		if len(spelled) > maxKey {
			return nil, fmt.Errorf("tuple key is over the limit of %d bytes", maxKey)
		}
	}
	return tupleHash(spelled), nil
}

// view is what keys(), values() and items() give.
type view struct {
	m    *Map
	kind viewKind
}

type viewKind int

const (
	viewKeys viewKind = iota
	viewValues
	viewItems
)

func (v *view) typeName() string {
	return [...]string{"dict_keys", "dict_values", "dict_items"}[v.kind]
}

func (v *view) at(i int) Value {
	switch v.kind {
	case viewKeys:
		return v.m.keys[i]
	case viewValues:
		return v.m.values[i]
	}
	return newTuple(v.m.keys[i], v.m.values[i])
}
