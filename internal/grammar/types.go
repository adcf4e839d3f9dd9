package grammar

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// keywords are those of each type of JSON Schema.
var keywords = map[string][]string{
	"object":  {"properties", "required", "additionalProperties"},
	"array":   {"items", "prefixItems", "minItems", "maxItems"},
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"number":  rangeKeywords,
	"integer": rangeKeywords,
	"boolean": nil,
	"null":    nil,
}

var rangeKeywords = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}

// ofType is any value of one type that the keywords allow.
func (c *compiler) ofType(name string, o object, at string, depth int) (expr, error) {
	switch name {
	case "object":
		return c.objects(o, at, depth)
	case "array":
		return c.arrays(o, at, depth)
	case "string":
		return c.strings(o, at)
	case "boolean":
		return c.alt(c.literal("true"), c.literal("false")), nil
	case "null":
		return c.literal("null"), nil
	}
	return c.numbers(o, at, name == "integer")
}

// types is any of the types that a schema names, or that its keywords speak of.
func (c *compiler) types(o object, at string, depth int) (expr, error) {
	names, err := typesOf(o, at)
	if err != nil {
		return 0, err
	}
	if names == nil {
		names = spokenOf(o)
	}
	known := []string{"type"}
	for _, name := range names {
		known = append(known, keywords[name]...)
	}
	if err := only(o, at, known); err != nil {
		return 0, err
	}
	if names == nil {
		return c.value, nil
	}
	kids := make([]expr, len(names))
	for i, name := range names {
		if kids[i], err = c.ofType(name, o, at, depth); err != nil {
			return 0, err
		}
	}
	return c.alt(kids...), nil
}

// typesOf reads "type"; nil is none.
func typesOf(o object, at string) ([]string, error) {
	raw, ok := o.values["type"]
	if !ok {
		return nil, nil
	}
	var names []string
	if name, err := readString(raw); err == nil {
		names = []string{name}
	} else if err := json.Unmarshal(raw, &names); err != nil || len(names) == 0 {
		return nil, fmt.Errorf("schema at %s: type is %s, want a name or a list of them", at, clip(raw))
	}
	for _, name := range names {
		if _, ok := keywords[name]; !ok {
			return nil, fmt.Errorf("schema at %s: type %q is not one of JSON's", at, name)
		}
	}
	return names, nil
}

// spokenOf is the one type whose keywords a schema without type has.
func spokenOf(o object) []string {
	for _, name := range []string{"object", "array", "string", "number"} {
		if o.has(keywords[name]...) {
			return []string{name}
		}
	}
	return nil
}

// objects writes the properties in the schema's order. One that is not required may be left out.
func (c *compiler) objects(o object, at string, depth int) (expr, error) {
	if !o.has("properties") {
		return c.maps(o, at, depth)
	}
	props, err := readObject(o.values["properties"])
	if err != nil {
		return 0, fmt.Errorf("schema at %s/properties %w", at, err)
	}
	required, err := requiredOf(o, props, at)
	if err != nil {
		return 0, err
	}
	blank := c.blank()
	comma := c.then(c.literal(","), blank)
	first, later := nothing, nothing // what follows, if no property is written yet, and if one is
	for _, name := range slices.Backward(props.names) {
		value, err := c.schema(props.values[name], at+"/properties/"+name, depth)
		if err != nil {
			return 0, err
		}
		member := c.seq(c.literal(quote(name)), c.colon(), value)
		begin, more := c.then(member, later), c.seq(comma, member, later)
		if required[name] {
			first, later = begin, more
		} else {
			first, later = c.alt(begin, first), c.alt(more, later)
		}
	}
	return c.seq(c.literal("{"), blank, first, blank, c.literal("}")), nil
}

func requiredOf(o, props object, at string) (map[string]bool, error) {
	var names []string
	if raw, ok := o.values["required"]; ok {
		if err := json.Unmarshal(raw, &names); err != nil {
			return nil, fmt.Errorf("schema at %s: required is %s, want a list of names", at, clip(raw))
		}
	}
	required := map[string]bool{}
	for _, name := range names {
		if !props.has(name) {
			return nil, fmt.Errorf("schema at %s: %q is required and not in properties", at, name)
		}
		required[name] = true
	}
	return required, nil
}

// maps is an object of any names.
func (c *compiler) maps(o object, at string, depth int) (expr, error) {
	if _, err := requiredOf(o, object{}, at); err != nil {
		return 0, err
	}
	raw, ok := o.values["additionalProperties"]
	if !ok {
		return c.object, nil
	}
	value, err := c.schema(raw, at+"/additionalProperties", depth)
	if err != nil {
		return 0, err
	}
	pair := c.seq(c.text(0, endless), c.colon(), value)
	if pair == never {
		return c.list("{", "}", never, 0, 0), nil
	}
	return c.list("{", "}", pair, 0, endless), nil
}

func (c *compiler) arrays(o object, at string, depth int) (expr, error) {
	low, high, err := counts(o, "minItems", "maxItems", at)
	if err != nil {
		return 0, err
	}
	if o.has("prefixItems") {
		return c.tuple(o, at, depth)
	}
	item := c.value
	if raw, ok := o.values["items"]; ok {
		if item, err = c.schema(raw, at+"/items", depth); err != nil {
			return 0, err
		}
	}
	if item == never {
		high = 0
	}
	if high != endless && low > high {
		return never, nil
	}
	return c.list("[", "]", item, low, high), nil
}

// tuple is a list with a schema for each place.
func (c *compiler) tuple(o object, at string, depth int) (expr, error) {
	kids, err := c.several(o.values["prefixItems"], at+"/prefixItems", depth)
	if err != nil {
		return 0, err
	}
	if o.has("minItems", "maxItems") || o.has("items") && string(o.values["items"]) != "false" {
		return 0, fmt.Errorf("schema at %s: beside prefixItems only items: false is supported", at)
	}
	blank := c.blank()
	all := kids[0]
	for _, kid := range kids[1:] {
		all = c.seq(all, c.literal(","), blank, kid)
	}
	return c.seq(c.literal("["), blank, all, blank, c.literal("]")), nil
}

// counts reads two bounds; no upper one is endless.
func counts(o object, least, most, at string) (low, high int32, err error) {
	high = endless
	for name, into := range map[string]*int32{least: &low, most: &high} {
		raw, ok := o.values[name]
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || f < 0 || f > maxCount {
			return 0, 0, fmt.Errorf("schema at %s: %s is %s, want a whole number from 0 to %d", at, name, clip(raw), maxCount)
		}
		*into = int32(f)
	}
	return low, high, nil
}

func (c *compiler) strings(o object, at string) (expr, error) {
	low, high, err := counts(o, "minLength", "maxLength", at)
	if err != nil {
		return 0, err
	}
	if !o.has("pattern", "format") {
		if high != endless && low > high {
			return never, nil
		}
		return c.text(low, high), nil
	}
	if o.has("minLength", "maxLength") || o.has("pattern") && o.has("format") {
		return 0, fmt.Errorf("schema at %s: pattern, format and lengths are not supported together", at)
	}
	pattern, around, err := c.patternOf(o, at)
	if err != nil {
		return 0, err
	}
	inside, err := c.regex(pattern, c.quoted, around)
	if err != nil {
		return 0, fmt.Errorf("schema at %s: %w", at, err)
	}
	mark := c.literal(`"`)
	return c.seq(mark, inside, mark), nil
}

// patternOf is a schema's pattern, which may match in the middle of a text, or that of its format, which may not.
func (c *compiler) patternOf(o object, at string) (pattern string, around expr, err error) {
	if raw, ok := o.values["pattern"]; ok {
		if pattern, err = readString(raw); err != nil {
			return "", 0, fmt.Errorf("schema at %s: pattern %w", at, err)
		}
		return pattern, c.repeat(c.character(), 0, endless), nil
	}
	name, err := readString(o.values["format"])
	if pattern, ok := formats[name]; ok && err == nil {
		return pattern, nothing, nil
	}
	return "", 0, fmt.Errorf("schema at %s: format %s is not supported", at, clip(o.values["format"]))
}

const (
	datePattern = `[1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`
	timePattern = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet       = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	label       = `[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}`
)

// formats are the formats that can be held to, by pattern. A date never falls on the 29th of February: which years have
// one is no matter for a pattern.
var formats = map[string]string{
	"date":      datePattern,
	"time":      timePattern,
	"date-time": datePattern + "T" + timePattern,
	"uuid":      `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
	"ipv4":      octet + `(\.` + octet + `){3}`,
	"email":     `[a-z0-9]{1,20}([._+-][a-z0-9]{1,20}){0,2}@` + label + `(\.` + label + `){0,2}\.[a-z]{2,10}`,
}

func (c *compiler) numbers(o object, at string, whole bool) (expr, error) {
	b, ok, err := readBounds(o)
	switch {
	case err != nil:
		return 0, fmt.Errorf("schema at %s: %w", at, err)
	case whole && ok:
		return c.integerIn(b), nil
	case whole:
		return c.integer(), nil
	case ok:
		return c.numberIn(b), nil
	}
	return c.number(), nil
}
