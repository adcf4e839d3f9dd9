package jobs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// Kwargs is a JSON object that keeps the order of its keys, which templates may print.
type Kwargs []Kwarg

// Kwarg is one member; Value is JSON.
type Kwarg struct {
	Key   string
	Value json.RawMessage
}

// With is k with one member set; k itself is not changed.
func (k Kwargs) With(key string, v json.RawMessage) Kwargs {
	k = slices.Clone(k)
	if i := slices.IndexFunc(k, func(m Kwarg) bool { return m.Key == key }); i >= 0 {
		k[i].Value = v
		return k
	}
	return append(k, Kwarg{key, v})
}

// MarshalJSON writes the members in order.
func (k Kwargs) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range k {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.Key))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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

// json reads free-form data; null is none.
func (d *decoder) json(into *json.RawMessage) func(value) {
	return func(v value) {
		var b bytes.Buffer
		d.appendJSON(&b, v)
		*into = b.Bytes()
		if b.String() == "null" {
			*into = nil
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
