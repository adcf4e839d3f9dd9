package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"tfbatch/internal/row"
)

// maxNesting is how deep a line's arrays and objects may nest. Messages need four levels;
// the bound keeps a hostile line from costing more than its length.
const maxNesting = 64

// member is one key of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// strictObject reads a line as one JSON object. encoding/json alone changes data without a
// word: it takes the last of two equal keys, ignores case, and replaces bytes and escapes
// that are no Unicode text. All of that is an error here.
func strictObject(line []byte) ([]member, *row.Error) {
	if !utf8.Valid(line) {
		return nil, fail(row.InvalidUTF8, "byte %d of the line is not UTF-8", invalidByte(line))
	}
	if !json.Valid(line) {
		var whole json.RawMessage
		return nil, fail(row.InvalidJSON, "%s", jsonProblem(json.Unmarshal(line, &whole)))
	}
	if line[firstByte(line)] != '{' {
		return nil, fail(row.InvalidJSON, "line is no JSON object")
	}
	if err := strictPass(line); err != nil {
		return nil, err
	}
	return members(line), nil
}

func invalidByte(line []byte) int {
	at := 0
	for at < len(line) {
		r, size := utf8.DecodeRune(line[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func firstByte(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t\r\n")) }

func jsonProblem(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v, at byte %d of the line", err, syntax.Offset)
	}
	return err.Error()
}

// strictPass walks valid JSON and finds keys that come twice, lone surrogates and deep nesting.
func strictPass(data []byte) *row.Error {
	var open []map[string]bool // of each open container, the keys so far; nil for an array
	key := false               // the next string is a key
	for at := 0; at < len(data); at++ {
		switch data[at] {
		case '{', '[':
			key = data[at] == '{'
			var keys map[string]bool
			if key {
				keys = map[string]bool{}
			}
			if open = append(open, keys); len(open) > maxNesting {
				return fail(row.InvalidJSON, "nested deeper than %d, at byte %d of the line", maxNesting, at)
			}
		case '}', ']':
			open, key = open[:len(open)-1], false
		case ',':
			key = open[len(open)-1] != nil
		case '"':
			end := stringEnd(data, at)
			if err := strictString(data[at:end], at); err != nil {
				return err
			}
			if key {
				name := text(data[at:end])
				if open[len(open)-1][name] {
					return fail(row.InvalidJSON, "key %q comes twice, at byte %d of the line", clip(name), at)
				}
				open[len(open)-1][name] = true
			}
			key, at = false, end-1
		}
	}
	return nil
}

// stringEnd is the index behind the closing quote of the string that opens at start.
func stringEnd(data []byte, start int) int {
	at := start + 1
	for data[at] != '"' {
		if data[at] == '\\' {
			at++
		}
		at++
	}
	return at + 1
}

// strictString finds a surrogate escape without its other half; at is its place in the line.
func strictString(quoted []byte, at int) *row.Error {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		if quoted[i] != 'u' {
			continue
		}
		high := escape(quoted[i+1:])
		i += 4
		if high < 0xd800 || high > 0xdfff {
			continue
		}
		rest := quoted[i+1:]
		if high >= 0xdc00 || !bytes.HasPrefix(rest, []byte(`\u`)) || escape(rest[2:])>>10 != 0xdc00>>10 {
			return fail(row.InvalidUTF8, `escape \u%04x is half of a surrogate pair, at byte %d of the line`, high, at+i-5)
		}
		i += 6
	}
	return nil
}

// escape is the number of the four hex digits that b starts with.
func escape(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32) // valid JSON has four
	return n
}

// text is the value of a valid JSON string.
func text(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // cannot fail on what strictPass let through
	return s
}

// members lists a valid JSON object in the order of the line. The values are parts of it.
func members(object []byte) []member {
	var list []member
	at := skipSpace(object, firstByte(object)+1)
	for object[at] != '}' {
		if object[at] == ',' {
			at = skipSpace(object, at+1)
		}
		key := object[at:stringEnd(object, at)]
		at = skipSpace(object, at+len(key)) // the colon
		at = skipSpace(object, at+1)
		end := valueEnd(object, at)
		list = append(list, member{text(key), object[at:end:end]})
		at = skipSpace(object, end)
	}
	return list
}

// elements lists a valid JSON array. The values are parts of it.
func elements(array []byte) []json.RawMessage {
	var list []json.RawMessage
	at := skipSpace(array, firstByte(array)+1)
	for array[at] != ']' {
		if array[at] == ',' {
			at = skipSpace(array, at+1)
		}
		end := valueEnd(array, at)
		list = append(list, array[at:end:end])
		at = skipSpace(array, end)
	}
	return list
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\r' || data[at] == '\n') {
		at++
	}
	return at
}

// valueEnd is the index behind the value that begins at start of valid JSON.
func valueEnd(data []byte, start int) int {
	depth := 0
	for at := start; at < len(data); at++ {
		switch data[at] {
		case '"':
			at = stringEnd(data, at) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 { // of what the value is in
				return at
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
			continue
		default: // a number or a word
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return len(data)
}

// clip keeps what a message quotes short.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:most]), nil)) + "..."
}

func fail(code row.Code, format string, args ...any) *row.Error {
	return &row.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
