package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits on a config.json, which comes from strangers. The size leaves room for a quantized
// checkpoint that lists every module; the depth is twice what any known config nests.
const (
	MaxConfigBytes = 4 << 20
	maxConfigDepth = 16
)

// Fields reads the keys of a config.json within the limits that a family puts on them. The first
// fault sticks and Err reports it, so that a family's list of keys reads as a list. A key whose
// value is null counts as absent.
type Fields struct {
	file string
	keys map[string]json.RawMessage
	err  error
}

// ReadFields parses data, the contents of the named file: one JSON object, bounded in size and
// depth, in which no key stands twice.
func ReadFields(file string, data []byte) (*Fields, error) {
	if len(data) > MaxConfigBytes {
		return nil, fmt.Errorf("%s: %d bytes, more than the limit of %d", file, len(data), MaxConfigBytes)
	}
	if err := checkJSON(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	f := &Fields{file: file}
	if err := json.Unmarshal(data, &f.keys); err != nil {
		return nil, fmt.Errorf("%s: not a JSON object: %w", file, err)
	}
	return f, nil
}

// checkJSON reports what encoding/json lets pass: depth, a key that stands twice, and text after the value.
func checkJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := checkValue(dec, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("text after the JSON object at byte %d", dec.InputOffset())
	}
	return nil
}

func checkValue(dec *json.Decoder, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxConfigDepth {
		return fmt.Errorf("nested deeper than %d at byte %d", maxConfigDepth, dec.InputOffset())
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			if err := checkKey(dec, seen); err != nil {
				return err
			}
		}
		if err := checkValue(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}

func checkKey(dec *json.Decoder, seen map[string]bool) error {
	tok, err := dec.Token()
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	key, _ := tok.(string) // the decoder lets nothing else stand for a key
	if seen[key] {
		return fmt.Errorf("key %q stands twice", key)
	}
	seen[key] = true
	return nil
}

// Err is the first fault, or nil.
func (f *Fields) Err() error { return f.err }

// Failf records a fault, with the file's name before it, unless an earlier one stands.
func (f *Fields) Failf(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", f.file, fmt.Errorf(format, args...))
	}
}

// Has reports whether key is there and not null.
func (f *Fields) Has(key string) bool {
	raw, ok := f.keys[key]
	return ok && string(raw) != "null"
}

// Int is the whole number under the first of names that is there. The other names are older
// spellings of the same thing: one that is there too must agree. None of them there is a fault.
func (f *Fields) Int(lo, hi int, names ...string) int {
	name := f.pick(names)
	if name == "" {
		f.Failf("no %q", names[0])
		return lo
	}
	n, err := strconv.ParseInt(string(f.keys[name]), 10, 64)
	switch {
	case err != nil:
		f.Failf("%q is %s, not a whole number", name, clip(f.keys[name]))
		return lo
	case n < int64(lo) || n > int64(hi):
		f.Failf("%q is %d, not between %d and %d", name, n, lo, hi)
		return lo
	}
	return int(n)
}

// IntOr is Int with a value for a key that is absent.
func (f *Fields) IntOr(absent, lo, hi int, names ...string) int {
	if f.pick(names) == "" {
		return absent
	}
	return f.Int(lo, hi, names...)
}

// FloatOr is a number in [lo, hi] that float32 can hold, or absent where no name is there.
func (f *Fields) FloatOr(absent, lo, hi float64, names ...string) float64 {
	name := f.pick(names)
	if name == "" {
		return absent
	}
	return f.float(name, f.keys[name], lo, hi)
}

func (f *Fields) float(name string, raw json.RawMessage, lo, hi float64) float64 {
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil {
		f.Failf("%q is %s, not a number", name, clip(raw))
		return lo
	}
	if !(x >= lo && x <= hi) || math.IsInf(float64(float32(x)), 0) {
		f.Failf("%q is %v, not between %v and %v", name, x, lo, hi)
		return lo
	}
	return x
}

// BoolOr is true or false, or absent where no name is there.
func (f *Fields) BoolOr(absent bool, names ...string) bool {
	name := f.pick(names)
	if name == "" {
		return absent
	}
	var x bool
	if err := json.Unmarshal(f.keys[name], &x); err != nil {
		f.Failf("%q is %s, not true or false", name, clip(f.keys[name]))
	}
	return x
}

// StringOr is a text, or absent where key is not there.
func (f *Fields) StringOr(absent, key string) string {
	if !f.Has(key) {
		return absent
	}
	var s string
	if err := json.Unmarshal(f.keys[key], &s); err != nil {
		f.Failf("%q is %s, not a text", key, clip(f.keys[key]))
	}
	return s
}

// Strings is a list of texts, nil where key is absent.
func (f *Fields) Strings(key string) []string {
	var list []string
	f.list(key, "texts", &list)
	return list
}

// Ints is a list of whole numbers, nil where key is absent.
func (f *Fields) Ints(key string) []int {
	var list []int
	f.list(key, "whole numbers", &list)
	return list
}

func (f *Fields) list(key, what string, into any) {
	if !f.Has(key) {
		return
	}
	// A null among the elements would pass for a zero.
	if err := json.Unmarshal(f.keys[key], into); err != nil || bytes.Contains(f.keys[key], []byte("null")) {
		f.Failf("%q is %s, not a list of %s", key, clip(f.keys[key]), what)
	}
}

// object is the members of the object under key, nil where key is absent.
func (f *Fields) object(key string) map[string]json.RawMessage {
	if !f.Has(key) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.keys[key], &members); err != nil {
		f.Failf("%q is %s, not an object", key, clip(f.keys[key]))
	}
	return members
}

// Only is a fault unless key is absent or holds one of the literals: the way to refuse a setting
// that would change the arithmetic.
func (f *Fields) Only(key string, literals ...string) {
	if !f.Has(key) {
		return
	}
	for _, l := range literals {
		if string(f.keys[key]) == l {
			return
		}
	}
	if len(literals) == 0 {
		f.Failf("%q is %s, which is not supported", key, clip(f.keys[key]))
		return
	}
	f.Failf("%q is %s, which is not supported; only %s is", key, clip(f.keys[key]), strings.Join(literals, " or "))
}

// pick is the first of names that is there, "" for none. Those after it must hold the same.
func (f *Fields) pick(names []string) string {
	first := ""
	for _, name := range names {
		switch {
		case !f.Has(name):
		case first == "":
			first = name
		case !sameValue(f.keys[first], f.keys[name]):
			f.Failf("%q is %s and %q is %s; they must agree", first, clip(f.keys[first]), name, clip(f.keys[name]))
		}
	}
	return first
}

// sameValue compares two scalars; 1e6 and 1000000.0 are the same number.
func sameValue(a, b json.RawMessage) bool {
	x, errA := strconv.ParseFloat(string(a), 64)
	y, errB := strconv.ParseFloat(string(b), 64)
	if errA == nil && errB == nil {
		return x == y
	}
	return bytes.Equal(a, b)
}

// clip keeps a hostile value from filling an error.
func clip(raw json.RawMessage) string {
	const most = 60
	if len(raw) <= most {
		return string(raw)
	}
	return string(raw[:most]) + "…"
}
