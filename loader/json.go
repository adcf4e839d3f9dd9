package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// encoding/json lets a key appear twice, takes null for any value, replaces broken
// UTF-8 and matches struct fields without case. A header read twice must mean the same
// to every reader, so these few functions walk its tokens and allow none of that.

// parseObject reads raw, which must be one JSON object and nothing else. value is
// called with each key and consumes that key's value from the decoder.
func parseObject(raw []byte, value func(d *json.Decoder, key string) error) error {
	if !utf8.Valid(raw) {
		return errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := object(d, func(key string) error { return value(d, key) }); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more follows the object that ends at byte %d", d.InputOffset())
	}
	return nil
}

// object reads an object and calls value after each key to consume what belongs to it.
func object(d *json.Decoder, value func(key string) error) error {
	if err := delim(d, '{'); err != nil {
		return err
	}
	return members(d, value)
}

// members is object after the opening brace.
func members(d *json.Decoder, value func(key string) error) error {
	seen := make(map[string]bool)
	for d.More() {
		key, err := stringValue(d)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %.100q is there twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return delim(d, '}')
}

// numbers reads an array of at most most non-negative integers.
func numbers[N int | int64](d *json.Decoder, most int) ([]N, error) {
	if err := delim(d, '['); err != nil {
		return nil, err
	}
	var list []N
	for d.More() {
		if len(list) == most {
			return nil, fmt.Errorf("more than %d numbers", most)
		}
		tok, err := token(d)
		if err != nil {
			return nil, err
		}
		n, ok := tok.(json.Number)
		v, err := strconv.ParseUint(string(n), 10, 63)
		if !ok || err != nil || uint64(N(v)) != v {
			return nil, fmt.Errorf("%.40q is not a whole number from 0 to 2^63-1", fmt.Sprint(tok))
		}
		list = append(list, N(v))
	}
	return list, delim(d, ']')
}

func stringValue(d *json.Decoder) (string, error) {
	tok, err := token(d)
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("%.40q is not a string", fmt.Sprint(tok))
	}
	return s, nil
}

func delim(d *json.Decoder, want json.Delim) error {
	tok, err := token(d)
	if err != nil {
		return err
	}
	return expect(d, tok, want)
}

// expect wants the token just read to be want.
func expect(d *json.Decoder, tok json.Token, want json.Delim) error {
	if tok != want {
		return fmt.Errorf("%.40q where %q belongs, before byte %d", fmt.Sprint(tok), want.String(), d.InputOffset())
	}
	return nil
}

// token reads the next token; an end of input is an error like any other.
func token(d *json.Decoder) (json.Token, error) {
	tok, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("JSON near byte %d: %w", d.InputOffset(), err)
	}
	return tok, nil
}
