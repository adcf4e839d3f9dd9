package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// str methods: each takes its receiver first. On a Markup they give Markup back, and escape what
// they put in; format does not and is refused there.

// onText makes a method of one that needs the receiver's text only.
func onText(name string, do func(r *run, s string) (Value, error)) *function {
	return &function{name: name, params: []param{need("self")}, posOnly: 1, body: func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		v, err := do(r, s)
		if t, ok := v.(str); ok {
			v = like(a[0], string(t))
		}
		return v, err
	}}
}

func textMethod(name string, posOnly int, params []param, do body) *function {
	return &function{name: name, params: append([]param{need("self")}, params...), posOnly: posOnly, body: do}
}

func searchMethods() []*function {
	span := []param{need("sub"), opt("start", none{}), opt("end", none{})}
	return []*function{
		textMethod("find", 4, span, findIn(strings.Index, false)),
		textMethod("rfind", 4, span, findIn(strings.LastIndex, false)),
		textMethod("index", 4, span, findIn(strings.Index, true)),
		textMethod("rindex", 4, span, findIn(strings.LastIndex, true)),
		textMethod("count", 4, span, countIn),
		textMethod("startswith", 4, span, affix(strings.HasPrefix)),
		textMethod("endswith", 4, span, affix(strings.HasSuffix)),
	}
}

// within cuts s to the start and end of a search; ok is false when start lies beyond s. from is
// the place of the cut in code points.
func within(r *run, s string, start, end Value) (cut string, from int, ok bool, err error) {
	if err := r.scan(len(s)); err != nil {
		return "", 0, false, err
	}
	if !given(start) && !given(end) {
		return s, 0, true, nil
	}
	n := runeCount(s)
	b, err := sliceBounds(start, end, nil, n)
	if err != nil {
		return "", 0, false, err
	}
	if i, isInt := asInt(start); isInt && i > int64(n) || b.start > b.stop {
		return "", 0, false, nil
	}
	return sliceText(s, b), b.start, true, nil
}

func findIn(search func(s, sub string) int, must bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		sub, err := wantText(a[1])
		if err != nil {
			return nil, err
		}
		cut, from, ok, err := within(r, s, a[2], a[3])
		if err != nil {
			return nil, err
		}
		i := -1
		if ok {
			i = search(cut, sub)
		}
		if i < 0 && must {
			return nil, errors.New("substring not found")
		}
		if i < 0 {
			return integer(-1), nil
		}
		return integer(from + runeCount(cut[:i])), nil
	}
}

func countIn(r *run, a []Value) (Value, error) {
	s, _ := text(a[0])
	sub, err := wantText(a[1])
	if err != nil {
		return nil, err
	}
	cut, _, ok, err := within(r, s, a[2], a[3])
	if err != nil || !ok {
		return integer(0), err
	}
	return integer(strings.Count(cut, sub)), nil
}

func affix(has func(s, part string) bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		parts := []Value{a[1]}
		if t, ok := a[1].(*tuple); ok {
			parts = t.items
		}
		cut, _, ok, err := within(r, s, a[2], a[3])
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			p, err := wantText(part)
			if err != nil {
				return nil, err
			}
			if ok && has(cut, p) {
				return boolean(true), r.step(1)
			}
		}
		return boolean(false), r.step(len(parts))
	}
}

// shapeMethods give a string a new shape.
func shapeMethods() []*function {
	chars, width := []param{opt("chars", none{})}, []param{need("width"), opt("fillchar", str(" "))}
	methods := []*function{
		textMethod("strip", 2, chars, stripMethod(true, true)),
		textMethod("lstrip", 2, chars, stripMethod(true, false)),
		textMethod("rstrip", 2, chars, stripMethod(false, true)),
		textMethod("ljust", 3, width, padMethod(padRight)),
		textMethod("rjust", 3, width, padMethod(padLeft)),
		textMethod("center", 3, width, padMethod(padCenter)),
		textMethod("zfill", 2, []param{need("width")}, zeroFill),
		textMethod("replace", 4, []param{need("old"), need("new"), opt("count", integer(-1))}, replaceMethod),
		textMethod("removeprefix", 2, []param{need("prefix")}, removeAffix(strings.TrimPrefix)),
		textMethod("removesuffix", 2, []param{need("suffix")}, removeAffix(strings.TrimSuffix)),
		textMethod("join", 2, []param{need("iterable")}, joinMethod),
		{name: "format", variadic: formatMethod},
	}
	for _, name := range []string{"encode", "expandtabs", "format_map", "isidentifier", "maketrans", "translate"} {
		methods = append(methods, unsupported("str method", name))
	}
	return methods
}

// strip trims white space, or the code points of chars.
func strip(s string, chars Value, left, right bool) (string, error) {
	in := isSpace
	if given(chars) {
		set, err := wantText(chars)
		if err != nil {
			return "", err
		}
		in = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s, nil
}

func stripMethod(left, right bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		trimmed, err := strip(s, a[1], left, right)
		if err != nil {
			return nil, err
		}
		set, _ := text(a[1])
		return like(a[0], trimmed), r.scan((len(s) - len(trimmed)) * (1 + len(set)))
	}
}

type padSide int

const (
	padRight padSide = iota
	padLeft
	padCenter
)

func padMethod(side padSide) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		width, err := wantInt(a[1])
		if err != nil {
			return nil, err
		}
		fill, err := wantText(a[2])
		if err != nil {
			return nil, err
		}
		if runeCount(fill) != 1 {
			return nil, errors.New("the fill character must be exactly one character long")
		}
		padded, err := pad(r, s, width, fill, side)
		return like(a[0], padded), err
	}
}

// pad fills s up to width code points.
func pad(r *run, s string, width int, fill string, side padSide) (string, error) {
	missing := width - runeCount(s)
	if missing <= 0 {
		return s, r.scan(len(s))
	}
	if missing > maxOutput {
		return "", fmt.Errorf("width of %d is over the limit of %d", width, maxOutput)
	}
	if err := r.alloc(len(s) + missing*len(fill)); err != nil {
		return "", err
	}
	left := 0
	switch side {
	case padLeft:
		left = missing
	case padCenter:
		left = missing/2 + missing&width&1
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, missing-left), nil
}

func zeroFill(r *run, a []Value) (Value, error) {
	s, _ := text(a[0])
	width, err := wantInt(a[1])
	if err != nil {
		return nil, err
	}
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	padded, err := pad(r, s, width-len(sign), "0", padLeft)
	return like(a[0], sign+padded), err
}

func replaceMethod(r *run, a []Value) (Value, error) {
	s, _ := text(a[0])
	old, err := wantText(a[1])
	if err != nil {
		return nil, err
	}
	if _, err := wantText(a[2]); err != nil {
		return nil, err
	}
	with, _ := text(a[2])
	if _, safe := a[0].(markup); safe {
		with = string(escapeText(a[2]))
	}
	n, err := wantInt(a[3])
	if err != nil {
		return nil, err
	}
	out, err := replaceText(r, s, old, with, n)
	return like(a[0], out), err
}

func removeAffix(remove func(s, part string) string) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		part, err := wantText(a[1])
		if err != nil {
			return nil, err
		}
		return like(a[0], remove(s, part)), r.step(1)
	}
}

func joinMethod(r *run, a []Value) (Value, error) {
	sep, _ := text(a[0])
	items, err := collect(r, a[1])
	if err != nil {
		return nil, errors.New("can only join an iterable")
	}
	_, safe := a[0].(markup)
	parts, size := make([]string, len(items)), 0
	for i, item := range items {
		if safe {
			if item, err = escapeValue(r, []Value{item}); err != nil {
				return nil, err
			}
		}
		s, ok := text(item)
		if !ok {
			return nil, fmt.Errorf("sequence item %d: expected str instance, %s found", i, item.typeName())
		}
		parts[i] = s
		size += len(s) + len(sep)
	}
	if err := r.alloc(size); err != nil {
		return nil, err
	}
	return like(a[0], strings.Join(parts, sep)), nil
}
