package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The limits of a schema: its bytes, how deep it nests, and its counts.
const (
	maxSchema = 1 << 18
	maxDepth  = 64
	maxCount  = 1_000_000
)

// JSONSchema is the grammar of the JSON texts that a schema (draft 2020-12, the subset of FORMATS.md)
// validates, with properties in the schema's order and only those that it names. What the subset lacks is an error
// that names the keyword and its place.
func JSONSchema(schema []byte) (*Grammar, error) {
	if len(schema) > maxSchema {
		return nil, fmt.Errorf("schema has %d bytes, at most %d are read", len(schema), maxSchema)
	}
	if !json.Valid(schema) {
		return nil, errors.New("schema is not JSON")
	}
	return compile(func(p *pool) (expr, error) {
		c := &compiler{pool: p, root: schema, refs: map[string]expr{}}
		c.value, c.object = p.value()
		e, err := c.schema(schema, "#", 0)
		if err == nil {
			err = c.bodies()
		}
		if err == nil {
			err = c.wellFounded()
		}
		if err == nil {
			err = c.apart()
		}
		return e, err
	})
}

// compiler makes expressions of schemas.
type compiler struct {
	*pool
	root          json.RawMessage
	value, object expr
	refs          map[string]expr // the rule of each reference
	left          []string        // references whose rule has no body yet
	rivals        []rival         // what must not have a text in common
}

// annotations say nothing about what is valid.
var annotations = []string{"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default",
	"examples", "deprecated", "readOnly", "writeOnly"}

// shapes are the keywords that decide alone, first the strongest, with what may stand beside each.
var shapes = []struct {
	name   string
	beside []string
}{{"$ref", nil}, {"const", []string{"type"}}, {"enum", []string{"type"}}, {"anyOf", nil}, {"oneOf", []string{"discriminator"}}, {"allOf", nil}}

// shape is the expression of a keyword of shapes.
func (c *compiler) shape(name string, o object, at string, depth int) (expr, error) {
	switch name {
	case "$ref":
		return c.ref(o, at)
	case "const":
		return c.values(o, []json.RawMessage{o.values["const"]}, at)
	case "enum":
		return c.enum(o, at)
	case "anyOf":
		return c.anyOf(o, at, depth)
	case "oneOf":
		return c.oneOf(o, at, depth)
	}
	return c.allOf(o, at, depth)
}

// schema is the expression of one schema, which is found at a place of the whole.
func (c *compiler) schema(raw json.RawMessage, at string, depth int) (expr, error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("schema at %s nests deeper than %d", at, maxDepth)
	}
	switch string(bytes.TrimSpace(raw)) {
	case "true":
		return c.value, nil
	case "false":
		return never, nil
	}
	o, err := readObject(raw)
	if err != nil {
		return 0, fmt.Errorf("schema at %s %w", at, err)
	}
	for _, s := range shapes {
		if !o.has(s.name) {
			continue
		}
		if err := only(o, at, append([]string{s.name}, s.beside...)); err != nil {
			return 0, err
		}
		return c.shape(s.name, o, at, depth+1)
	}
	return c.types(o, at, depth+1)
}

// only refuses keywords that are neither known nor annotations.
func only(o object, at string, known []string) error {
	for _, name := range o.names {
		if !slices.Contains(known, name) && !slices.Contains(annotations, name) {
			return fmt.Errorf("schema at %s: %q is not supported here", at, name)
		}
	}
	return nil
}

// ref names the rule of a place of the schema.
func (c *compiler) ref(o object, at string) (expr, error) {
	to, err := readString(o.values["$ref"])
	if err != nil || !strings.HasPrefix(to, "#") {
		return 0, fmt.Errorf("schema at %s: $ref is %s, want a place in this schema, as #/$defs/name", at, clip(o.values["$ref"]))
	}
	if e, ok := c.refs[to]; ok {
		return e, nil
	}
	e := c.rule()
	c.refs[to] = e
	c.left = append(c.left, to)
	return e, nil
}

// bodies makes the rules that references asked for.
func (c *compiler) bodies() error {
	for len(c.left) > 0 {
		to := c.left[0]
		c.left = c.left[1:]
		raw, err := find(c.root, to)
		if err != nil {
			return err
		}
		body, err := c.schema(raw, to, 0)
		if err != nil {
			return err
		}
		c.define(c.refs[to], body)
	}
	return nil
}

// find follows a JSON pointer (RFC 6901) through objects and lists.
func find(root json.RawMessage, pointer string) (json.RawMessage, error) {
	at := root
	parts := strings.Split(strings.TrimPrefix(pointer, "#"), "/")
	for _, part := range parts[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next, ok := child(at, part)
		if !ok {
			return nil, fmt.Errorf("$ref %s: there is no %q", pointer, part)
		}
		at = next
	}
	return at, nil
}

func child(raw json.RawMessage, name string) (json.RawMessage, bool) {
	if o, err := readObject(raw); err == nil {
		v, ok := o.values[name]
		return v, ok
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(name)
	if err != nil || json.Unmarshal(raw, &list) != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

func (c *compiler) enum(o object, at string) (expr, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(o.values["enum"], &list); err != nil || len(list) == 0 || len(list) > maxChoices {
		return 0, fmt.Errorf("schema at %s: enum is %s, want a list of 1 to %d values", at, clip(o.values["enum"]), maxChoices)
	}
	return c.values(o, list, at)
}

// values is any of a list of values of the schema's types.
func (c *compiler) values(o object, list []json.RawMessage, at string) (expr, error) {
	types, err := typesOf(o, at)
	if err != nil {
		return 0, err
	}
	kids := make([]expr, 0, len(list))
	for _, v := range list {
		if len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return isOf(t, v) }) {
			kids = append(kids, c.literal(canonical(v)))
		}
	}
	if len(kids) == 0 {
		return 0, fmt.Errorf("schema at %s: no value of enum or const is of its type", at)
	}
	return c.alt(kids...), nil
}

// canonical is a value without blanks; a text without needless escapes.
func canonical(v json.RawMessage) string {
	if s, err := readString(v); err == nil {
		return quote(s)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, v); err != nil {
		return string(v)
	}
	return out.String()
}

// isOf reports whether v is of a type that JSON Schema names.
func isOf(name string, v json.RawMessage) bool {
	kind := "number"
	switch v[0] {
	case '{':
		kind = "object"
	case '[':
		kind = "array"
	case '"':
		kind = "string"
	case 't', 'f':
		kind = "boolean"
	case 'n':
		kind = "null"
	}
	if name == "integer" {
		_, err := wholeNumber(v)
		return kind == "number" && err == nil
	}
	return name == kind
}

func (c *compiler) anyOf(o object, at string, depth int) (expr, error) {
	kids, err := c.several(o.values["anyOf"], at+"/anyOf", depth)
	return c.alt(kids...), err
}

func (c *compiler) allOf(o object, at string, depth int) (expr, error) {
	kids, err := c.several(o.values["allOf"], at+"/allOf", depth)
	if err == nil && len(kids) != 1 {
		err = fmt.Errorf("schema at %s: allOf of %d schemas is not supported, only of one", at, len(kids))
	}
	if err != nil {
		return 0, err
	}
	return kids[0], nil
}

// oneOf is anyOf for schemas of which no text matches two.
func (c *compiler) oneOf(o object, at string, depth int) (expr, error) {
	kids, err := c.several(o.values["oneOf"], at+"/oneOf", depth)
	for i, a := range kids {
		for j, b := range kids[:i] {
			c.rivals = append(c.rivals, rival{a, b, fmt.Sprintf("schema at %s: oneOf/%d and oneOf/%d", at, j, i)})
		}
	}
	return c.alt(kids...), err
}

func (c *compiler) several(raw json.RawMessage, at string, depth int) ([]expr, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, fmt.Errorf("schema at %s is %s, want a list of schemas", at, clip(raw))
	}
	kids := make([]expr, len(list))
	for i, s := range list {
		var err error
		if kids[i], err = c.schema(s, fmt.Sprintf("%s/%d", at, i), depth); err != nil {
			return nil, err
		}
	}
	return kids, nil
}

func readString(raw json.RawMessage) (s string, err error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("is not a string")
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}
