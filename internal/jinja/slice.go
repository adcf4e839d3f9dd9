package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// slice is obj[start:stop:step]; a nil bound was left out. It fails where Python fails; jinja2 makes
// an undefined of a bad slice if all of it is literal, since it computes literals beforehand.
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
