package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str().
func (r *run) str(v Value) (string, error) {
	switch v := v.(type) {
	case str:
		return string(v), nil
	case markup:
		return string(v), nil
	case *undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr is Python's repr().
func (r *run) repr(v Value) (string, error) {
	w := &reprWriter{r: r}
	if err := w.value(v); err != nil {
		return "", err
	}
	return w.out.String(), nil
}

// shortRepr is repr for messages: scalars only, and not long.
func shortRepr(v Value) string {
	s, isText := text(v)
	if isText {
		v = str(s[:min(len(s), 80)])
	}
	switch v.(type) {
	case str, integer, float, boolean, none:
		w := &reprWriter{r: &run{steps: maxKey, bytes: maxKey}}
		if w.value(v) == nil {
			return w.out.String()
		}
	}
	return v.typeName()
}

type reprWriter struct {
	r   *run
	out buffer
}

func (w *reprWriter) add(s string) error { return w.out.write(w.r, s) }

func (w *reprWriter) value(v Value) error {
	switch v := v.(type) {
	case none:
		return w.add("None")
	case boolean:
		return w.add(map[boolean]string{true: "True", false: "False"}[v])
	case integer:
		return w.add(strconv.FormatInt(int64(v), 10))
	case *bigInt:
		return w.add(v.n.String())
	case float:
		return w.add(formatFloat(float64(v)))
	case str:
		return w.add(quote(string(v)))
	case markup:
		return w.add("Markup(" + quote(string(v)) + ")")
	case *undefined:
		return w.add("Undefined")
	case *list:
		return w.sequence("[", v.items, "]")
	case *tuple:
		if len(v.items) == 1 {
			return w.sequence("(", v.items, ",)")
		}
		return w.sequence("(", v.items, ")")
	case *Map:
		return w.mapping(v)
	}
	return w.object(v)
}

// object writes what is not plain data. Most of it Python prints with its address in memory.
func (w *reprWriter) object(v Value) error {
	switch v := v.(type) {
	case *rangeValue:
		if v.step != 1 {
			return w.add(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step))
		}
		return w.add(fmt.Sprintf("range(%d, %d)", v.start, v.stop))
	case *view:
		items := make([]Value, v.m.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return w.sequence(v.typeName()+"([", items, "])")
	case *namespace:
		if err := w.add("<Namespace "); err != nil {
			return err
		}
		if err := w.mapping(v.attrs); err != nil {
			return err
		}
		return w.add(">")
	case *macro:
		if v.def.name == "" {
			return w.add("<Macro None>")
		}
		return w.add("<Macro " + quote(v.def.name) + ">")
	case *loop:
		n, err := v.length(w.r)
		if err != nil {
			return err
		}
		return w.add(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, n))
	}
	return fmt.Errorf("printing a '%s' object is not supported", v.typeName())
}

func (w *reprWriter) sequence(open string, items []Value, closing string) error {
	if err := w.r.enterData(); err != nil {
		return err
	}
	defer w.r.leaveData()
	if err := w.add(open); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			if err := w.add(", "); err != nil {
				return err
			}
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
	return w.add(closing)
}

func (w *reprWriter) mapping(m *Map) error {
	if err := w.r.enterData(); err != nil {
		return err
	}
	defer w.r.leaveData()
	if err := w.add("{"); err != nil {
		return err
	}
	for i, key := range m.keys {
		if i > 0 {
			if err := w.add(", "); err != nil {
				return err
			}
		}
		if err := w.value(key); err != nil {
			return err
		}
		if err := w.add(": "); err != nil {
			return err
		}
		if err := w.value(m.values[i]); err != nil {
			return err
		}
	}
	return w.add("}")
}

// quote is repr of a str.
func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	out := make([]byte, 0, len(s)+2)
	out = append(out, q)
	for _, c := range s {
		switch {
		case c == rune(q), c == '\\':
			out = append(out, '\\', byte(c))
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case unicode.IsPrint(c):
			out = append(out, string(c)...)
		default:
			out = append(out, asciiEscape(c)...)
		}
	}
	return string(append(out, q))
}

// formatFloat is repr of a float: the shortest digits that read back, with an exponent from 1e16
// up and below 1e-4.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		if f < 0 {
			return "-inf"
		}
		return "inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
