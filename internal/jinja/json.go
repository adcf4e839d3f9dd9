package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads one JSON text as Python's json.loads does: keys keep their order, of equal keys
// the last value counts, a number is an int unless it has a fraction or exponent. Text that is
// not UTF-8 and escapes of lone surrogates, which no prompt could carry, are errors.
func FromJSON(raw []byte) (Value, error) {
	if len(raw) > maxDataSize {
		return nil, fmt.Errorf("JSON of %d bytes is over the limit of %d", len(raw), maxDataSize)
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	var whole json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(whole))
	d.UseNumber()
	return decode(d, 0)
}

// checkText finds what encoding/json would replace without a word.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("JSON is not UTF-8")
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		first, ok := hexEscape(raw[i:])
		if !ok || !utf16.IsSurrogate(first) {
			continue
		}
		i += 5
		second := rune(0)
		if i+1 < len(raw) && raw[i] == '\\' {
			second, _ = hexEscape(raw[i+1:])
		}
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return fmt.Errorf(`JSON has the lone surrogate \u%04x`, first)
		}
		i += 5
	}
	return nil
}

// hexEscape reads uXXXX.
func hexEscape(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 32)
	return rune(n), err == nil
}

func decode(d *json.Decoder, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON nests over the limit of %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return none{}, nil
	case bool:
		return boolean(t), nil
	case string:
		return str(t), nil
	case json.Number:
		return decodeNumber(string(t))
	case json.Delim:
		if t == '{' {
			return decodeObject(d, depth)
		}
		return decodeArray(d, depth)
	}
	return nil, fmt.Errorf("unexpected JSON token %v", t)
}

func decodeNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if math.IsInf(f, 0) {
			err = nil // Python reads 1e999 as inf
		}
		return float(f), err
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return integer(i), nil
	}
	if len(s) > maxIntBits/3 {
		return nil, fmt.Errorf("JSON int of %d digits is too long", len(s))
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("bad JSON number %q", s)
	}
	return makeInt(n)
}

func decodeObject(d *json.Decoder, depth int) (Value, error) {
	m := NewMap()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		m.Set(key.(string), v)
	}
	_, err := d.Token()
	return m, err
}

func decodeArray(d *json.Decoder, depth int) (Value, error) {
	l := &list{}
	for d.More() {
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := d.Token()
	return l, err
}
