package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// maxIndent is how many spaces may follow a line break between two tokens of JSON. Without a bound a model can
// write blanks until its tokens run out.
const maxIndent = 16

// blank is what may stand between the tokens of JSON: nothing, a space, or a line break and an indentation.
func (p *pool) blank() expr {
	space := p.literal(" ")
	return p.alt(nothing, space, p.then(p.literal("\n"), p.repeat(space, 0, maxIndent)))
}

// colon is what stands between a name and its value.
func (p *pool) colon() expr { return p.then(p.literal(":"), p.optional(p.literal(" "))) }

// The ranges of code points that JSON writes as they are in a string, and the short escapes of others.
var (
	plainRanges  = [...][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, unicode.MaxRune}}
	shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
)

// quoted is one code point from lo to hi as it is written in a string of JSON, without needless escapes.
func (p *pool) quoted(lo, hi rune) expr {
	all := never
	for _, r := range plainRanges {
		all = p.alt(all, p.runes(max(lo, r[0]), min(hi, r[1])))
	}
	for r, escape := range shortEscapes {
		if lo <= r && r <= hi {
			all = p.alt(all, p.literal(escape))
		}
	}
	for r := lo; r <= hi && r < 0x20; r++ {
		if shortEscapes[r] == "" {
			all = p.alt(all, p.literal(fmt.Sprintf(`\u%04x`, r)))
		}
	}
	return all
}

// character is one code point in a string of JSON, written in any way but as two surrogates.
func (p *pool) character() expr {
	hex := p.bytes(span('0', '9').or(span('a', 'f')).or(span('A', 'F')))
	high := p.bytes(span('d', 'd').or(span('D', 'D')))
	other := p.bytes(span('0', '9').or(span('a', 'c')).or(span('A', 'C')).or(span('e', 'f')).or(span('E', 'F')))
	code := p.alt(
		p.seq(other, p.repeat(hex, 3, 3)),
		p.seq(high, p.bytes(span('0', '7')), p.repeat(hex, 2, 2)))
	escaped := p.alt(p.then(p.literal("u"), code))
	for _, letter := range `"\/bfnrt` {
		escaped = p.alt(escaped, p.literal(string(letter)))
	}
	all := p.then(p.literal(`\`), escaped)
	for _, r := range plainRanges {
		all = p.alt(all, p.runes(r[0], r[1]))
	}
	return all
}

// text is a string of JSON with min to max characters.
func (p *pool) text(min, max int32) expr {
	quote := p.literal(`"`)
	return p.seq(quote, p.repeat(p.character(), min, max), quote)
}

// list is open, then item from min to max times with commas between, then shut.
func (p *pool) list(open, shut string, item expr, min, max int32) expr {
	blank := p.blank()
	more := p.seq(p.literal(","), blank, item)
	left := max
	if left != endless {
		left--
	}
	items := nothing
	if max != 0 {
		items = p.then(item, p.repeat(more, atLeast0(min-1), left))
	}
	if min == 0 {
		items = p.optional(items)
	}
	return p.seq(p.literal(open), blank, items, blank, p.literal(shut))
}

func atLeast0(n int32) int32 { return max(n, 0) }

// value opens the rule of any JSON, and object is any object.
func (p *pool) value() (value, object expr) {
	value = p.rule()
	pair := p.seq(p.text(0, endless), p.colon(), value)
	object = p.list("{", "}", pair, 0, endless)
	p.define(value, p.alt(object, p.list("[", "]", value, 0, endless), p.text(0, endless), p.number(),
		p.literal("true"), p.literal("false"), p.literal("null")))
	return value, object
}

// JSONObject is the grammar of any JSON object.
func JSONObject() (*Grammar, error) {
	return compile(func(p *pool) (expr, error) {
		_, object := p.value()
		return object, nil
	})
}

// quote writes a text as JSON, and only what must be escaped as escapes.
func quote(text string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// object is a JSON object whose members keep their order.
type object struct {
	names  []string
	values map[string]json.RawMessage
}

func (o object) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o.values[n]; ok {
			return true
		}
	}
	return false
}

func readObject(raw []byte) (o object, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return o, fmt.Errorf("is %s, want an object", clip(raw))
	}
	o.values = map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return o, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return o, err
		}
		key := name.(string) // the keys of an object are strings, or Token fails
		if o.has(key) {
			return o, fmt.Errorf("has %q twice", key)
		}
		o.names = append(o.names, key)
		o.values[key] = v
	}
	if _, err := dec.Token(); err != nil {
		return o, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return o, fmt.Errorf("has more behind it")
	}
	return o, nil
}

// clip shortens what a message quotes.
func clip(raw []byte) string {
	const most = 60
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}
