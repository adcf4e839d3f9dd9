package jobs

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder walks the syntax tree of a job file. It never stops at the first error.
type decoder struct {
	file   string
	dir    string
	source []byte
	errs   Errors
	places map[string]*token.Position // of every value that a table set, by path
}

// value is a node with its path, and the place of its key where it has one.
type value struct {
	node  ast.Node
	path  string
	keyAt *token.Position
}

// at is where the value begins. The parser puts a block mapping at its first colon.
func (v value) at() *token.Position {
	switch n := v.node.(type) {
	case *ast.MappingValueNode:
		return n.Key.GetToken().Position
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken().Position
		}
	}
	return v.node.GetToken().Position
}

func (d *decoder) bad(v value, format string, args ...any) { d.fail(v.at(), v.path, format, args...) }

// fields is what a mapping may hold: a setter per key. The setter of a key that the format
// foresees and this version does not do is later.
type fields map[string]func(value)

// later refuses a key by name.
func (d *decoder) later(v value) { d.fail(v.keyAt, v.path, "not supported yet") }

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	value value
}

// entries lists a mapping in the order of the file.
func (d *decoder) entries(v value) ([]entry, bool) {
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		d.bad(v, "is %s, want a mapping of keys to values", kind(v.node))
		return nil, false
	}
	var list []entry
	for _, p := range pairs {
		key := p.Key.GetToken()
		if p.Key.IsMergeKey() {
			d.fail(key.Position, v.path, "merge keys are not supported; use defaults")
			continue
		}
		path := strings.TrimPrefix(v.path+"."+key.Value, ".")
		list = append(list, entry{key.Value, value{p.Value, path, key.Position}})
	}
	return list, true
}

// mapping hands each value to the setter of its key.
func (d *decoder) mapping(v value, known fields) {
	list, _ := d.entries(v)
	for _, e := range list {
		set, ok := known[e.key]
		if !ok {
			d.fail(e.value.keyAt, e.value.path, "unknown key; known are %s", strings.Join(known.names(), ", "))
			continue
		}
		d.places[e.value.path] = e.value.at()
		set(e.value)
	}
}

// names lists the keys.
func (f fields) names() []string {
	var names []string
	for key := range f {
		names = append(names, key)
	}
	slices.Sort(names)
	return names
}

// list hands each element to each.
func (d *decoder) list(v value, each func(value)) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.bad(v, "is %s, want a list", kind(v.node))
		return
	}
	for i, element := range n.Values {
		each(v.element(i, element))
	}
}

// element is the i-th of the list v.
func (v value) element(i int, n ast.Node) value {
	return value{node: n, path: v.path + "[" + strconv.Itoa(i) + "]"}
}

// kind names a node for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias, which are not supported; use defaults"
	case *ast.TagNode:
		return "tagged, which is not supported"
	}
	return "no plain value"
}

// readText is the text of a scalar that is text, quoted or plain.
func (d *decoder) readText(v value) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	d.bad(v, "is %s, want text%s", kind(v.node), quoteHint(v.node))
	return "", false
}

func quoteHint(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return `; put it in "quotes"`
	}
	return ""
}

func (d *decoder) text(into *string) func(value) {
	return func(v value) {
		if s, ok := d.readText(v); ok {
			*into = s
		}
	}
}

// filled is text that may not be empty.
func (d *decoder) filled(into *string) func(value) {
	return func(v value) {
		if s, ok := d.readText(v); ok && s == "" {
			d.bad(v, "is empty text")
		} else if ok {
			*into = s
		}
	}
}

func (d *decoder) oneOf(into *string, choices ...string) func(value) {
	return func(v value) {
		s, ok := d.readText(v)
		if ok && !slices.Contains(choices, s) {
			d.bad(v, "is %q, want one of %s", s, strings.Join(choices, ", "))
		} else if ok {
			*into = s
		}
	}
}

func (d *decoder) boolean(into *bool) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.BoolNode)
		if !ok {
			d.bad(v, "is %s, want true or false", kind(v.node))
			return
		}
		*into = n.Value
	}
}

// texts reads a list of text, or one text as a list of one.
func (d *decoder) texts(into *[]string) func(value) {
	return func(v value) {
		out := []string{}
		add := func(v value) {
			if s, ok := d.readText(v); ok {
				out = append(out, s)
			}
		}
		if _, one := v.node.(*ast.SequenceNode); one {
			d.list(v, add)
		} else {
			add(v)
		}
		*into = out
	}
}

// plain is the text of a scalar that is not quoted, as the file has it.
func (d *decoder) plain(v value, want string) (string, bool) {
	t := v.node.GetToken()
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return t.Value, true
	case *ast.StringNode:
		if t.Type == token.StringType {
			return t.Value, true
		}
	}
	d.bad(v, "is %s, want %s", kind(v.node), want)
	return "", false
}

// integer reads digits. YAML's other notations (010, 0x10, 1_000) mean different numbers
// to different readers and are refused.
func (d *decoder) integer(low, high int64, set func(int64)) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a whole number")
		if !ok {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text {
			d.bad(v, "is %s, want a whole number in digits", text)
		} else if n < low || n > high {
			d.bad(v, "is %d, want %d to %d", n, low, high)
		} else {
			set(n)
		}
	}
}

func (d *decoder) count(into *int, low, high int) func(value) {
	return d.integer(int64(low), int64(high), func(n int64) { *into = int(n) })
}

// auto reads a whole number, or "auto" as 0.
func (d *decoder) auto(into *int, high int) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.StringNode); ok && n.Value == Auto {
			*into = 0
			return
		}
		d.count(into, 1, high)(v)
	}
}

func (d *decoder) seed(into *uint64) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a whole number")
		if !ok {
			return
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != text {
			d.bad(v, "is %s, want 0 to %d in digits", text, uint64(math.MaxUint64))
			return
		}
		*into = n
	}
}

func (d *decoder) number(into *float32) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a number")
		if !ok {
			return
		}
		f, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xX_") {
			d.bad(v, "is %s, want a number", text)
			return
		}
		*into = float32(f)
	}
}

func (d *decoder) size(low int64, set func(int64)) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a size such as 16MiB")
		if !ok {
			return
		}
		n, err := parseSize(text)
		if err != nil {
			d.bad(v, "%v", err)
		} else if n < low {
			d.bad(v, "is %d bytes, want %d or more", n, low)
		} else {
			set(n)
		}
	}
}

// amount reads a share ("70%") or what count reads.
func (d *decoder) amount(into *Amount, count func(value)) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.StringNode)
		if !ok || !strings.HasSuffix(n.Value, "%") {
			count(v)
			return
		}
		p, err := parsePercent(n.Value)
		if err != nil {
			d.bad(v, "%v", err)
			return
		}
		*into = Amount{Percent: p}
	}
}

// kwargs reads free-form data on top of what the defaults set.
func (d *decoder) kwargs(into *Kwargs) func(value) {
	return func(v value) {
		list, _ := d.entries(v)
		for _, e := range list {
			var b bytes.Buffer
			d.appendJSON(&b, e.value)
			*into = into.With(e.key, b.Bytes())
		}
	}
}

func (d *decoder) appendJSON(b *bytes.Buffer, v value) {
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		d.appendObject(b, v)
	case *ast.SequenceNode:
		b.WriteByte('[')
		for i, element := range n.Values {
			if i > 0 {
				b.WriteByte(',')
			}
			d.appendJSON(b, v.element(i, element))
		}
		b.WriteByte(']')
	case *ast.NullNode:
		b.WriteString("null")
	case *ast.BoolNode:
		b.WriteString(strconv.FormatBool(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		d.appendNumber(b, v)
	default:
		if s, ok := d.readText(v); ok {
			b.Write(quote(s))
		}
	}
}

func (d *decoder) appendObject(b *bytes.Buffer, v value) {
	list, _ := d.entries(v)
	b.WriteByte('{')
	for i, e := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(e.key))
		b.WriteByte(':')
		d.appendJSON(b, e.value)
	}
	b.WriteByte('}')
}

// appendNumber takes only numbers that YAML and JSON write alike.
func (d *decoder) appendNumber(b *bytes.Buffer, v value) {
	text := v.node.GetToken().Value
	if !json.Valid([]byte(text)) {
		d.bad(v, "is %s, want a number in plain decimal notation", text)
		return
	}
	b.WriteString(text)
}
