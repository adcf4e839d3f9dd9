package jinja

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
)

// toJSON is the tojson filter of transformers: json.dumps with ensure_ascii off.
func toJSON(r *run, a []Value) (Value, error) {
	w := &jsonWriter{r: r, ascii: truth(a[1]), item: ", ", key: ": ", sorted: truth(a[4])}
	if err := w.setIndent(a[2]); err != nil {
		return nil, err
	}
	if err := w.setSeparators(a[3]); err != nil {
		return nil, err
	}
	if err := w.value(a[0]); err != nil {
		return nil, err
	}
	return str(w.out.String()), nil
}

type jsonWriter struct {
	r         *run
	out       buffer
	ascii     bool
	sorted    bool
	item, key string // what stands between items, and behind a key
	lines     bool   // every item on a line of its own,
	indent    string // indented by this, once a level
	level     int
}

func (w *jsonWriter) setIndent(v Value) error {
	if !given(v) {
		return nil
	}
	w.lines, w.item = true, ","
	var n int
	s, ok := text(v)
	if ok {
		n = len(s)
	} else if i, err := wantInt(v); err != nil {
		return err
	} else {
		n = max(i, 0)
	}
	if n > maxIndent {
		return fmt.Errorf("indent of %d is over the limit of %d", n, maxIndent)
	}
	if !ok {
		s = strings.Repeat(" ", n)
	}
	w.indent = s
	return nil
}

func (w *jsonWriter) setSeparators(v Value) error {
	if !given(v) {
		return nil
	}
	pair, err := collect(w.r, v)
	if err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("separators must be two strings, not %d", len(pair))
	}
	if w.item, err = wantText(pair[0]); err == nil {
		w.key, err = wantText(pair[1])
	}
	return err
}

func (w *jsonWriter) add(s string) error { return w.out.write(w.r, s) }

func (w *jsonWriter) value(v Value) error {
	switch v := v.(type) {
	case str:
		return w.add(w.quote(string(v)))
	case markup:
		return w.add(w.quote(string(v)))
	case *list:
		return w.array(v.items)
	case *tuple:
		return w.array(v.items)
	case *Map:
		return w.object(v)
	}
	s, ok := jsonScalar(v)
	if !ok {
		return fmt.Errorf("object of type %s is not JSON serializable", v.typeName())
	}
	return w.add(s)
}

func jsonScalar(v Value) (string, bool) {
	switch v := v.(type) {
	case none:
		return "null", true
	case boolean:
		return strconv.FormatBool(bool(v)), true
	case integer:
		return strconv.FormatInt(int64(v), 10), true
	case *bigInt:
		return v.n.String(), true
	case float:
		f := float64(v)
		switch {
		case math.IsNaN(f):
			return "NaN", true
		case math.IsInf(f, 1):
			return "Infinity", true
		case math.IsInf(f, -1):
			return "-Infinity", true
		}
		return formatFloat(f), true
	}
	return "", false
}

// nested writes what stands around n items and between them.
func (w *jsonWriter) nested(open, closing string, n int, item func(i int) error) error {
	if n == 0 {
		return w.add(open + closing)
	}
	if err := w.r.enterData(); err != nil {
		return err
	}
	defer w.r.leaveData()
	w.level++
	if err := w.add(open + w.newline()); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := w.add(w.item + w.newline()); err != nil {
				return err
			}
		}
		if err := item(i); err != nil {
			return err
		}
	}
	w.level--
	return w.add(w.newline() + closing)
}

func (w *jsonWriter) newline() string {
	if !w.lines {
		return ""
	}
	return "\n" + strings.Repeat(w.indent, w.level)
}

func (w *jsonWriter) array(items []Value) error {
	return w.nested("[", "]", len(items), func(i int) error { return w.value(items[i]) })
}

func (w *jsonWriter) object(m *Map) error {
	order, err := w.order(m)
	if err != nil {
		return err
	}
	return w.nested("{", "}", len(order), func(i int) error {
		key, err := jsonKey(m.keys[order[i]])
		if err != nil {
			return err
		}
		if err := w.add(w.quote(key) + w.key); err != nil {
			return err
		}
		return w.value(m.values[order[i]])
	})
}

func (w *jsonWriter) order(m *Map) (order []int, err error) {
	order = make([]int, m.Len())
	for i := range order {
		order[i] = i
	}
	if !w.sorted {
		return order, w.r.step(len(order))
	}
	sort.SliceStable(order, func(i, j int) bool {
		before, e := less(w.r, "<", m.keys[order[i]], m.keys[order[j]], false)
		if err == nil {
			err = e
		}
		return before
	})
	return order, err
}

func jsonKey(key Value) (string, error) {
	if s, ok := text(key); ok {
		return s, nil
	}
	s, ok := jsonScalar(key)
	if !ok {
		return "", fmt.Errorf("keys must be str, int, float, bool or None, not %s", key.typeName())
	}
	return s, nil
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`,
}

func (w *jsonWriter) quote(s string) string {
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for _, c := range s {
		esc, escaped := jsonEscapes[c]
		switch {
		case escaped:
			out = append(out, esc...)
		case c < 0x20, w.ascii && c >= 0x7f && c < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, c)
		case w.ascii && c >= 0x10000:
			high, low := utf16.EncodeRune(c)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = append(out, string(c)...)
		}
	}
	return string(append(out, '"'))
}
