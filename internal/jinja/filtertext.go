package jinja

import (
	"fmt"
	"strings"
	"unicode"
)

// refusedFilters are filters of jinja2 that this package does not have: random, and those that
// make HTML or wrap text.
var refusedFilters = nameSet(`filesizeformat pprint random striptags urlencode urlize wordwrap xmlattr`)

// textFilters are the filters on one string. What is no string is turned into one first.
func textFilters() []*function {
	value := need("value")
	upper := &function{name: "upper", params: []param{value}, body: caseFilter(upperCase)}
	escapeFilter := &function{name: "escape", params: []param{value}, body: escapeValue}
	return []*function{
		upper,
		{name: "lower", params: []param{value}, body: caseFilter(lowerCase)},
		{name: "capitalize", params: []param{value}, body: caseFilter(capitalCase)},
		{name: "title", params: []param{value}, body: titleFilter},
		{name: "trim", params: []param{value, opt("chars", none{})}, body: trimFilter},
		{name: "string", params: []param{value}, body: caseFilter(func(s string) string { return s })},
		{name: "safe", params: []param{value}, body: markSafe},
		{name: "forceescape", params: []param{value}, body: forceEscape},
		escapeFilter,
		alias("e", escapeFilter),
		{name: "replace", params: []param{need("s"), need("old"), need("new"), opt("count", none{})}, body: replaceFilter},
		{name: "indent", params: []param{need("s"), opt("width", integer(4)), opt("first", boolean(false)), opt("blank", boolean(false))}, body: indentFilter},
		{name: "truncate", params: []param{need("s"), opt("length", integer(255)), opt("killwords", boolean(false)), opt("end", str("...")), opt("leeway", none{})}, body: truncateFilter},
		{name: "center", params: []param{value, opt("width", integer(80))}, body: centerFilter},
		{name: "wordcount", params: []param{value}, body: wordCount},
		{name: "format", variadic: formatFilter},
	}
}

// soft is markupsafe.soft_str: a string as it is, anything else as str().
func (r *run) soft(v Value) (Value, string, error) {
	if s, ok := text(v); ok {
		return v, s, r.scan(len(s))
	}
	s, err := r.str(v)
	return str(s), s, err
}

func caseFilter(change func(string) string) body {
	return func(r *run, a []Value) (Value, error) {
		v, s, err := r.soft(a[0])
		if err != nil {
			return nil, err
		}
		return like(v, change(s)), r.alloc(len(s))
	}
}

// titleFilter gives a plain str even of a Markup.
func titleFilter(r *run, a []Value) (Value, error) {
	_, s, err := r.soft(a[0])
	if err != nil {
		return nil, err
	}
	return str(titleWords(s)), r.alloc(len(s))
}

func trimFilter(r *run, a []Value) (Value, error) {
	v, s, err := r.soft(a[0])
	if err != nil {
		return nil, err
	}
	trimmed, err := strip(s, a[1], true, true)
	return like(v, trimmed), err
}

func markSafe(r *run, a []Value) (Value, error) {
	s, err := r.str(a[0])
	return markup(s), err
}

func escapeValue(r *run, a []Value) (Value, error) {
	v, s, err := r.soft(a[0])
	if err != nil {
		return nil, err
	}
	return escapeText(v), r.alloc(2 * len(s))
}

func forceEscape(r *run, a []Value) (Value, error) {
	s, err := r.str(a[0])
	if err != nil {
		return nil, err
	}
	return escapeText(str(s)), r.alloc(2 * len(s))
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// escapeText is markupsafe.escape of a string.
func escapeText(v Value) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	s, _ := text(v)
	return markup(htmlEscaper.Replace(s))
}

func replaceFilter(r *run, a []Value) (Value, error) {
	var s [3]string
	for i := range s {
		var err error
		if s[i], err = r.str(a[i]); err != nil {
			return nil, err
		}
	}
	n := -1
	if given(a[3]) {
		var err error
		if n, err = wantInt(a[3]); err != nil {
			return nil, err
		}
	}
	out, err := replaceText(r, s[0], s[1], s[2], n)
	return str(out), err
}

func replaceText(r *run, s, old, with string, n int) (string, error) {
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if err := r.alloc(len(s) + found*max(len(with)-len(old), 0)); err != nil {
		return "", err
	}
	return strings.Replace(s, old, with, n), nil
}

func indentFilter(r *run, a []Value) (Value, error) {
	s, ok := text(a[0])
	if !ok {
		if u, isUndefined := a[0].(*undefined); isUndefined {
			return nil, u.err()
		}
		return nil, badOperands("+=", a[0], str(""))
	}
	indent, ok := text(a[1])
	if !ok {
		n, err := wantInt(a[1])
		if err != nil {
			return nil, err
		}
		if n > maxSource {
			return nil, fmt.Errorf("indent of %d is over the limit of %d", n, maxSource)
		}
		indent = strings.Repeat(" ", max(n, 0))
	}
	lines := splitLines(s+"\n", false)
	if err := r.alloc(len(s) + len(lines)*(1+len(indent))); err != nil {
		return nil, err
	}
	var out strings.Builder
	for i, line := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		if i == 0 && truth(a[2]) || i > 0 && (line != "" || truth(a[3])) {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	return like(a[0], out.String()), nil
}

func truncateFilter(r *run, a []Value) (Value, error) {
	length, err := wantInt(a[1])
	if err != nil {
		return nil, err
	}
	end, err := wantText(a[3])
	if err != nil {
		return nil, err
	}
	leeway := 5
	if given(a[4]) {
		if leeway, err = wantInt(a[4]); err != nil {
			return nil, err
		}
	}
	keep := length - runeCount(end)
	if keep < 0 || leeway < 0 {
		return nil, fmt.Errorf("expected length >= %d and leeway >= 0, got %d and %d", runeCount(end), length, leeway)
	}
	s, ok := text(a[0])
	if !ok {
		if n, known := pyLen(r, a[0]); known == nil && n <= length+leeway {
			return a[0], nil
		}
		return nil, fmt.Errorf("truncate expects a string, not %s", a[0].typeName())
	}
	if runeCount(s) <= length+leeway {
		return a[0], r.scan(len(s))
	}
	s = s[:runeOffset(s, keep)]
	if space := strings.LastIndexByte(s, ' '); space >= 0 && !truth(a[2]) {
		s = s[:space]
	}
	return concat(r, like(a[0], s), a[3])
}

func centerFilter(r *run, a []Value) (Value, error) {
	v, s, err := r.soft(a[0])
	if err != nil {
		return nil, err
	}
	width, err := wantInt(a[1])
	if err != nil {
		return nil, err
	}
	centered, err := pad(r, s, width, " ", padCenter)
	return like(v, centered), err
}

func wordCount(r *run, a []Value) (Value, error) {
	_, s, err := r.soft(a[0])
	if err != nil {
		return nil, err
	}
	n, inWord := 0, false
	for _, c := range s {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		if word && !inWord {
			n++
		}
		inWord = word
	}
	return integer(n), nil
}

func formatFilter(r *run, args []Value, kwargs []kwarg) (Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("format() missing a required argument: 'value'")
	}
	if len(args) > 1 && len(kwargs) > 0 {
		return nil, fmt.Errorf("can't handle positional and keyword arguments at the same time")
	}
	v, s, err := r.soft(args[0])
	if err != nil {
		return nil, err
	}
	if len(kwargs) == 0 {
		return formatPercent(r, v, s, newTuple(args[1:]...))
	}
	m, err := makeDict(r, nil, kwargs)
	if err != nil {
		return nil, err
	}
	return formatPercent(r, v, s, m)
}
