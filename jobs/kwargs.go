package jobs

import (
	"bytes"
	"encoding/json"
	"slices"
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
