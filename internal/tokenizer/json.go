package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// part is one value of the file, with its path for errors: "model.merges[3]".
type part struct {
	path string
	raw  json.RawMessage
}

// object is a JSON object whose keys are all accounted for. Unlike encoding/json's
// structs it tells "Type" from "type".
type object struct {
	part
	fields map[string]json.RawMessage
}

func (p part) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{p.path}, args...)...)
}

func (p part) null() bool { return len(p.raw) == 0 || string(p.raw) == "null" }

func (p part) into(v any) error {
	if p.null() {
		return p.errorf("missing")
	}
	if err := json.Unmarshal(p.raw, v); err != nil {
		return p.errorf("%w", err)
	}
	return nil
}

// object reads p and refuses keys that are not in known.
func (p part) object(known ...string) (object, error) {
	o := object{part: p}
	if err := p.into(&o.fields); err != nil {
		return o, err
	}
	for key := range o.fields {
		if !slices.Contains(known, key) {
			return o, o.get(key).errorf("this key is not supported (known are %s)", strings.Join(known, ", "))
		}
	}
	return o, nil
}

// kind reads the "type" of a polymorphic object.
func (p part) kind() (string, error) {
	var fields map[string]json.RawMessage
	if err := p.into(&fields); err != nil {
		return "", err
	}
	var kind string
	return kind, part{p.path + ".type", fields["type"]}.into(&kind)
}

func (p part) unsupported(kind, have string) error {
	return part{path: p.path + ".type"}.errorf("%q is not supported (supported are %s)", kind, have)
}

// few refuses a list or an object of more than most items before they are made values, which take many times
// the memory of their text.
func (p part) few(most int, what string) error {
	if n := items(p.raw); n > most {
		return p.errorf("%d %s, limit is %d", n, what, most)
	}
	return nil
}

// items counts what is in a list or an object of valid JSON; 1 of anything else.
func items(raw []byte) int {
	n, depth := 1, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				n++
			}
		}
	}
	return n
}

func (p part) list() ([]part, error) {
	if err := p.few(maxItems, "items"); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := p.into(&raw); err != nil {
		return nil, err
	}
	parts := make([]part, len(raw))
	for i, r := range raw {
		parts[i] = part{fmt.Sprintf("%s[%d]", p.path, i), r}
	}
	return parts, nil
}

func (o object) get(key string) part {
	path := key
	if o.path != "" {
		path = o.path + "." + key
	}
	return part{path, o.fields[key]}
}

func (o object) text(key string) (string, error) {
	var s string
	return s, o.get(key).into(&s)
}

// flag reads a boolean; absent and null mean def.
func (o object) flag(key string, def bool) (bool, error) {
	if o.get(key).null() {
		return def, nil
	}
	var b bool
	return b, o.get(key).into(&b)
}

// only refuses a value other than null or one of the given JSON texts.
func (o object) only(key string, allowed ...string) error {
	p := o.get(key)
	if p.null() || slices.Contains(allowed, string(p.raw)) {
		return nil
	}
	return p.errorf("%.40s is not supported, only null is", p.raw)
}
