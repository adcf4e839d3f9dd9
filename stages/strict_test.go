package stages

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tfbatch/internal/row"
)

func TestStrictObject(t *testing.T) {
	for _, c := range []struct {
		name, line string
		code       row.Code // empty: accepted
		message    string
	}{
		{"object", `{"a":[1,{"b":null}],"c":"\ud83d\ude00 \\u00"}`, "", ""},
		{"same key at two levels", `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, "", ""},
		{"key that looks nested", `{"a":["b","b"],"b":{"x":"a","a":"x"}}`, "", ""},
		{"white space", " \t{ \"a\" : 1 } ", "", ""},
		{"escaped pair", `{"a":"\uD834\uDD1E"}`, "", ""},
		{"escaped backslash before u", `{"a":"\\ud800"}`, "", ""},
		{"no JSON", `{"a":`, row.InvalidJSON, "unexpected end of JSON input, at byte 5"},
		{"comment", `{} // x`, row.InvalidJSON, "invalid character '/' after top-level value"},
		{"two values", `{} {}`, row.InvalidJSON, "after top-level value"},
		{"array", `[1]`, row.InvalidJSON, "line is no JSON object"},
		{"string", `"{}"`, row.InvalidJSON, "line is no JSON object"},
		{"control character", "{\"a\":\"\x01\"}", row.InvalidJSON, "invalid character"},
		{"not UTF-8", "{\"a\":\"\xff\"}", row.InvalidUTF8, "byte 6 of the line is not UTF-8"},
		{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", row.InvalidUTF8, "byte 6"},
		{"surrogate as UTF-8", "{\"a\":\"\xed\xa0\x80\"}", row.InvalidUTF8, "byte 6"},
		{"key twice", `{"a":1,"b":2,"a":3}`, row.InvalidJSON, `key "a" comes twice, at byte 13`},
		{"key twice by an escape", `{"a":1,"\u0061":3}`, row.InvalidJSON, `key "a" comes twice`},
		{"key twice below", `{"x":[{"a":1,"a":1}]}`, row.InvalidJSON, `key "a" comes twice`},
		{"key twice after an object", `{"a":{"z":1},"a":1}`, row.InvalidJSON, `key "a" comes twice`},
		{"lone high surrogate", `{"a":"x\ud800y"}`, row.InvalidUTF8, `escape \ud800 is half of a surrogate pair, at byte 7`},
		{"lone low surrogate", `{"a":"\udc00"}`, row.InvalidUTF8, `escape \udc00`},
		{"two high surrogates", `{"a":"\ud800\ud800"}`, row.InvalidUTF8, `escape \ud800`},
		{"high surrogate at the end of a key", `{"\ud800":1}`, row.InvalidUTF8, `escape \ud800`},
		{"deep", strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70), row.InvalidJSON, "nested deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := strictObject([]byte(c.line))
			switch {
			case c.code == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.code == "" && len(list) == 0:
				t.Error("no members")
			case c.code != "" && err == nil:
				t.Errorf("accepted: %v", list)
			case c.code != "" && (err.Code != c.code || !strings.Contains(err.Message, c.message)):
				t.Errorf("got %v, want %s: %s", err, c.code, c.message)
			}
		})
	}
}

// FuzzMembers holds the members of an object to those that encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, " {\t}\n", `{"a":1}`, `{"a" : [1,{"b":"}\\\""}] , "b":null,"c":-1.5e3 }`, `{"x":"\u0061","y":{"z":{}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		got, refused := strictObject(object)
		if refused != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(object))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for _, m := range got {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				t.Fatal(err)
			}
			if key != json.Token(m.key) || string(value) != string(m.value) {
				t.Fatalf("got %q: %q, want %q: %q", m.key, m.value, key, value)
			}
		}
		if d.More() {
			t.Fatalf("%d members and no more", len(got))
		}
	})
}
