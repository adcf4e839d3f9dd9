package jinja

import (
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
	if !json.Valid(raw) {
		var whole json.RawMessage
		return nil, json.Unmarshal(raw, &whole)
	}
	return (&valid{data: raw}).value(0)
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

// valid reads JSON that is known to be valid. It is a loop over bytes since every row passes here: json.Decoder's
// tokens took longer than the rest of a row's way.
type valid struct {
	data []byte
	at   int
}

// next is the first byte that is neither white space nor between two values.
func (d *valid) next() byte {
	for {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			d.at++
		default:
			return c
		}
	}
}

func (d *valid) value(depth int) (Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON nests over the limit of %d", maxDepth)
	}
	switch d.next() {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		s, err := d.text()
		return str(s), err
	}
	switch word := d.word(); word {
	case "null":
		return none{}, nil
	case "true", "false":
		return boolean(word == "true"), nil
	default:
		return decodeNumber(word)
	}
}

func (d *valid) object(depth int) (Value, error) {
	m := NewMap()
	for d.at++; d.next() != '}'; {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m.Set(key, v)
	}
	d.at++
	return m, nil
}

func (d *valid) array(depth int) (Value, error) {
	l := &list{}
	for d.at++; d.next() != ']'; {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	d.at++
	return l, nil
}

// text is the string that begins here.
func (d *valid) text() (s string, err error) {
	start, escaped := d.at, false
	for d.at++; d.data[d.at] != '"'; d.at++ {
		if d.data[d.at] == '\\' {
			escaped = true
			d.at++
		}
	}
	d.at++
	if !escaped {
		return string(d.data[start+1 : d.at-1]), nil
	}
	err = json.Unmarshal(d.data[start:d.at], &s)
	return s, err
}

// word is a number, or a name.
func (d *valid) word() string {
	start := d.at
	for d.at < len(d.data) && !strings.ContainsRune(" \t\r\n,]}", rune(d.data[d.at])) {
		d.at++
	}
	return string(d.data[start:d.at])
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
