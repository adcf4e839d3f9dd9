package jinja

import (
	"fmt"
	"strings"
)

// binary computes a op b; op is one of + - * / // % **.
func binary(r *run, op string, a, b Value) (Value, error) {
	if x, ok := a.(integer); ok {
		if y, ok := b.(integer); ok && small(x) && small(y) {
			switch op {
			case "+":
				return x + y, nil
			case "-":
				return x - y, nil
			case "*":
				return x * y, nil
			}
		}
	}
	if u, ok := a.(*undefined); ok {
		return nil, u.err()
	}
	if s, ok := text(a); ok && op == "%" {
		return formatPercent(r, a, s, b)
	}
	if u, ok := b.(*undefined); ok {
		return nil, u.err()
	}
	x, isX := asNumber(a)
	y, isY := asNumber(b)
	if isX && isY {
		return arithmetic(op, x, y)
	}
	if op == "+" {
		return concat(r, a, b)
	}
	if op == "*" && isY {
		return repeat(r, a, b)
	}
	if op == "*" && isX {
		return repeat(r, b, a)
	}
	return nil, badOperands(op, a, b)
}

// small ints neither overflow when multiplied nor need big.Int.
func small(i integer) bool { return -1<<31 < i && i < 1<<31 }

func badOperands(op string, a, b Value) error {
	return fmt.Errorf("unsupported operand type(s) for %s: '%s' and '%s'", op, a.typeName(), b.typeName())
}

// concat is + of two strings, lists or tuples. A Markup escapes what is added to it.
func concat(r *run, a, b Value) (Value, error) {
	s, isS := text(a)
	t, isT := text(b)
	if isS && isT {
		if err := r.alloc(len(s) + len(t)); err != nil {
			return nil, err
		}
		_, safeA := a.(markup)
		_, safeB := b.(markup)
		if safeA || safeB {
			return escapeText(a) + escapeText(b), nil
		}
		return str(s + t), nil
	}
	switch x := a.(type) {
	case *list:
		if y, ok := b.(*list); ok {
			items, err := joinItems(r, x.items, y.items)
			return &list{items}, err
		}
	case *tuple:
		if y, ok := b.(*tuple); ok {
			items, err := joinItems(r, x.items, y.items)
			return &tuple{items: items}, err
		}
	}
	if isS {
		return nil, fmt.Errorf("can only concatenate str (not \"%s\") to str", b.typeName())
	}
	return nil, badOperands("+", a, b)
}

func joinItems(r *run, a, b []Value) ([]Value, error) {
	if err := r.items(len(a) + len(b)); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...), nil
}

// repeat is a string, list or tuple times an int.
func repeat(r *run, a, times Value) (Value, error) {
	n, ok := asInt(times)
	if !ok {
		return nil, fmt.Errorf("can't multiply sequence by non-int of type '%s'", times.typeName())
	}
	n = max(n, 0)
	if n > maxOutput {
		return nil, fmt.Errorf("repetition of %d times is over the limit of %d", n, maxOutput)
	}
	if s, ok := text(a); ok {
		if err := r.alloc(len(s) * int(n)); err != nil {
			return nil, err
		}
		return like(a, strings.Repeat(s, int(n))), nil
	}
	switch a := a.(type) {
	case *list:
		items, err := repeatItems(r, a.items, int(n))
		return &list{items}, err
	case *tuple:
		items, err := repeatItems(r, a.items, int(n))
		return &tuple{items: items}, err
	}
	return nil, badOperands("*", a, times)
}

func repeatItems(r *run, items []Value, n int) ([]Value, error) {
	if err := r.items(len(items) * n); err != nil {
		return nil, err
	}
	out := make([]Value, 0, len(items)*n)
	for range n {
		out = append(out, items...)
	}
	return out, nil
}

// equal is ==. Every pair looked at is charged: containers may share parts many times over.
func equal(r *run, a, b Value) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if s, ok := text(a); ok {
		t, ok := text(b)
		return ok && s == t, r.scan(len(s))
	}
	if x, ok := asNumber(a); ok {
		y, ok := asNumber(b)
		if !ok {
			return false, nil
		}
		sign, ordered := compareNumbers(x, y)
		return ordered && sign == 0, nil
	}
	switch x := a.(type) {
	case none:
		_, ok := b.(none)
		return ok, nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case *list:
		y, ok := b.(*list)
		if !ok {
			return false, nil
		}
		return equalItems(r, x.items, y.items)
	case *tuple:
		y, ok := b.(*tuple)
		if !ok {
			return false, nil
		}
		return equalItems(r, x.items, y.items)
	case *Map:
		y, ok := b.(*Map)
		if !ok {
			return false, nil
		}
		return equalMaps(r, x, y)
	case *rangeValue:
		y, ok := b.(*rangeValue)
		return ok && x.same(y), nil
	case *view:
		if y, ok := b.(*view); ok && x != y && x.kind != viewValues {
			return false, fmt.Errorf("comparing %s with %s is not supported", x.typeName(), y.typeName())
		}
	}
	return a == b, nil
}

func equalItems(r *run, a, b []Value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	if err := r.enterData(); err != nil {
		return false, err
	}
	defer r.leaveData()
	for i := range a {
		if same, err := identicalOrEqual(r, a[i], b[i]); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// identicalOrEqual is how Python compares items: an object equals itself, even a NaN.
func identicalOrEqual(r *run, a, b Value) (bool, error) {
	if isPointer(a) && a == b {
		return true, nil
	}
	return equal(r, a, b)
}

func isPointer(v Value) bool {
	switch v.(type) {
	case none, boolean, integer, *bigInt, float, str, markup:
		return false
	}
	return true
}

func equalMaps(r *run, a, b *Map) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	if err := r.enterData(); err != nil {
		return false, err
	}
	defer r.leaveData()
	for i, key := range a.keys {
		hash, err := hashKey(key)
		if err != nil {
			return false, err
		}
		other, ok := b.lookup(hash)
		if !ok {
			return false, nil
		}
		if same, err := identicalOrEqual(r, a.values[i], other); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// compare is one of == != < <= > >= in not-in.
func compare(r *run, op string, a, b Value) (bool, error) {
	switch op {
	case "==", "!=":
		same, err := equal(r, a, b)
		return same == (op == "=="), err
	case "in", "not in":
		found, err := contains(r, b, a)
		return found == (op == "in"), err
	case ">":
		return less(r, op, b, a, false)
	case ">=":
		return less(r, op, b, a, true)
	case "<=":
		return less(r, op, a, b, true)
	}
	return less(r, op, a, b, false)
}

// less is a < b, or a <= b with orEqual; op is for the message.
func less(r *run, op string, a, b Value, orEqual bool) (bool, error) {
	if err := r.step(1); err != nil {
		return false, err
	}
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			return s < t || orEqual && s == t, r.scan(min(len(s), len(t)))
		}
	}
	if x, ok := asNumber(a); ok {
		if y, ok := asNumber(b); ok {
			sign, ordered := compareNumbers(x, y)
			return ordered && (sign < 0 || orEqual && sign == 0), nil
		}
	}
	switch x := a.(type) {
	case *undefined:
		return false, x.err()
	case *list:
		if y, ok := b.(*list); ok {
			return lessItems(r, op, x.items, y.items, orEqual)
		}
	case *tuple:
		if y, ok := b.(*tuple); ok {
			return lessItems(r, op, x.items, y.items, orEqual)
		}
	}
	if u, ok := b.(*undefined); ok {
		return false, u.err()
	}
	if op == ">" || op == ">=" {
		a, b = b, a
	}
	return false, fmt.Errorf("'%s' not supported between instances of '%s' and '%s'", op, a.typeName(), b.typeName())
}

func lessItems(r *run, op string, a, b []Value, orEqual bool) (bool, error) {
	if err := r.enterData(); err != nil {
		return false, err
	}
	defer r.leaveData()
	for i := range min(len(a), len(b)) {
		same, err := identicalOrEqual(r, a[i], b[i])
		if err != nil {
			return false, err
		}
		if !same {
			return less(r, op, a[i], b[i], orEqual)
		}
	}
	return len(a) < len(b) || orEqual && len(a) == len(b), nil
}

// contains is item in box.
func contains(r *run, box, item Value) (bool, error) {
	if s, ok := text(box); ok {
		t, ok := text(item)
		if !ok {
			return false, fmt.Errorf("'in <string>' requires string as left operand, not %s", item.typeName())
		}
		return strings.Contains(s, t), r.scan(len(s))
	}
	if v, ok := box.(*view); ok && v.kind == viewKeys {
		box = v.m
	}
	if m, ok := box.(*Map); ok {
		hash, err := hashKey(item)
		if err != nil {
			return false, err
		}
		_, ok := m.lookup(hash)
		return ok, nil
	}
	it, err := iterate(box)
	if err != nil {
		return false, fmt.Errorf("argument of type '%s' is not iterable", box.typeName())
	}
	for {
		v, ok, err := it.next(r)
		if !ok || err != nil {
			return false, err
		}
		if same, err := identicalOrEqual(r, v, item); same || err != nil {
			return same, err
		}
	}
}
