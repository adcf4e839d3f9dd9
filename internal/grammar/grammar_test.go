package grammar

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestRegexIsGosOwn(t *testing.T) {
	patterns := []string{
		`a`, `ab*c`, `(ab|cd)+`, `[a-c]{2,3}`, `^x?y$`, `^a$|^b$`, `(?i)Straße`, `[^a]`, `.`, `\d+\.\d*`, `é{2}`, `[α-ω]+`, `😀|[\x{1F600}-\x{1F64F}]`,
		`a{0,2}b{3}`, `(a|)(b|)`, `\w+@\w+`, `(?s).`, `[ࠀ-𐀀]`, `(a*)*b`,
	}
	texts := []string{
		"", "a", "b", "ab", "abc", "ac", "abbc", "abab", "cdab", "aa", "aaa", "abcc", "xy", "y", "STRASSE", "straße", "STRAßE", "é", "éé", "αβγ", "😀", "😁", "\n",
		"1.", "12.5", ".5", "bbb", "aabbb", "me@you", "ࠀ", "𐀀", "￿", "aab",
	}
	for _, pattern := range patterns {
		g, err := Regex(pattern)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		want := regexp.MustCompile(`^(?:` + pattern + `)$`)
		for _, text := range texts {
			if got := match(t, g, text); got != want.MatchString(text) {
				t.Errorf("%s on %q: %v, regexp says %v", pattern, text, got, !got)
			}
		}
	}
}

func match(t *testing.T, g *Grammar, text string) bool {
	t.Helper()
	ok, err := g.Match(text)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestRegexRefusals(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?=a)b`:                   "invalid or unsupported Perl syntax",
		`a\b`:                      `\b is not supported`,
		`a^b`:                      "^ is only supported at the start",
		`a$b`:                      "$ is only supported at the end",
		`(a)\1`:                    "invalid escape sequence",
		`[^\x00-\x{10FFFF}]`:       "nothing can match",
		strings.Repeat("a", 1<<15): "at most 16384 are read",
		`(((a{30}){30}){30}){30}`:  "invalid repeat count",
		`[a-`:                      "missing closing ]",
		"\xff":                     "invalid UTF-8",
	} {
		if _, err := Regex(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", pattern, err, want)
		}
	}
}

func TestChoice(t *testing.T) {
	g, err := Choice([]string{"yes", "no", "yesterday", "né"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"yes": true, "no": true, "yesterday": true, "né": true, "ye": false, "": false, "yesno": false} {
		if match(t, g, text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	for _, list := range [][]string{nil, {"a", ""}, make([]string, maxChoices+1)} {
		if _, err := Choice(list); err == nil {
			t.Errorf("%d choices: no error", len(list))
		}
	}
}

func TestSchemas(t *testing.T) {
	for _, c := range []struct {
		schema   string
		yes, not []string
	}{
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`,
			[]string{`{"a":1}`, `{"a": -20,"b":"x"}`, "{\n  \"a\": 0,\n  \"b\": \"é\\n\"\n}"},
			[]string{`{}`, `{"b":"x"}`, `{"b":"x","a":1}`, `{"a":1,}`, `{"a":01}`, `{"a":1,"c":2}`, `{"a":1} `, `{"a":1.5}`, "{\t\"a\":1}"}},
		{`{"type":"object","properties":{"a":{},"b":{"const":null},"c":{"enum":[1,"x",{"k": [true]}]}}}`,
			[]string{`{}`, `{"a":{"deep":[[],{}]}}`, `{"b":null}`, `{"c":{"k":[true]}}`, `{"a":"","c":"x"}`, `{"a":1e5,"b":null,"c":1}`},
			[]string{`{"c":"y"}`, `{,"b":null}`, `{"b":null,"a":1}`}},
		{`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3}`,
			[]string{`[true]`, `[false, true]`, `[true,true,false]`}, []string{`[]`, `[true,]`, `[true,true,true,true]`, `[1]`}},
		{`{"type":"array","items":false}`, []string{`[]`}, []string{`[1]`}},
		{`{"type":"array","prefixItems":[{"type":"null"},{"type":"integer"}],"items":false}`, []string{`[null, 3]`}, []string{`[null]`, `[null,3,4]`}},
		{`{"type":["string","null"],"minLength":1,"maxLength":2}`, []string{`"a"`, `"é😀"`, `null`, `"\u00e9\\"`}, []string{`""`, `"abc"`, `"\ud800"`, "\"\n\"", `"\x"`}},
		{`{"type":"string","pattern":"^[a-z]+\"$"}`, []string{`"ab\""`}, []string{`"ab"`, `"ab\u0022"`, `"1\""`}},
		{`{"type":"string","pattern":"b+"}`, []string{`"abbc"`, `"b"`}, []string{`"ac"`, `""`}},
		{`{"type":"string","format":"date"}`, []string{`"2026-12-31"`}, []string{`"2026-02-30"`, `"2026-13-01"`, `"26-01-01"`}},
		{`{"type":"integer","minimum":-5,"maximum":120}`, []string{`-5`, `0`, `9`, `10`, `99`, `100`, `120`, `-1`}, []string{`-6`, `121`, `200`, `00`, `-0`, `1.0`}},
		{`{"type":"integer","exclusiveMinimum":9,"exclusiveMaximum":101}`, []string{`10`, `55`, `100`}, []string{`9`, `101`, `1`}},
		{`{"type":"number","minimum":0,"maximum":1}`, []string{`0`, `0.5`, `1`, `1.00`, `0.999`}, []string{`1.01`, `-0.1`, `2`, `1e0`}},
		{`{"type":"number","exclusiveMinimum":0}`, []string{`0.01`, `3`, `12.5`}, []string{`0`, `0.00`, `-1`}},
		{`{"type":"number","minimum":-2,"exclusiveMaximum":0}`, []string{`-2`, `-2.0`, `-0.5`, `-1.25`}, []string{`0`, `-2.5`, `-3`, `1`}},
		{`{"type":"number"}`, []string{`1`, `-0.5`, `1.5e-10`, `2E+5`}, []string{`.5`, `1.`, `01`, `1e`, `+1`, `NaN`}},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}],"title":"either"}`, []string{`1`, `"a"`}, []string{`null`}},
		{`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"n":{"type":"integer"}},"required":["kind","n"]},
			{"type":"object","properties":{"kind":{"const":"b"},"s":{"type":"string"}},"required":["kind","s"]}]}`,
			[]string{`{"kind":"a","n":1}`, `{"kind":"b","s":""}`}, []string{`{"kind":"a","s":""}`}},
		{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]}}}`,
			[]string{`{"v":1}`, `{"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]}`}, []string{`{"v":1,"kids":[{}]}`}},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"x":1, "y":2}`}, []string{`{"x":"1"}`}},
		{`{"type":"object","additionalProperties":false}`, []string{`{}`}, []string{`{"x":1}`}},
		{`{"allOf":[{"type":"null"}]}`, []string{`null`}, []string{`1`}},
		{`{"enum":["<b>","a/b","é"]}`, []string{`"<b>"`, `"a/b"`, `"é"`}, []string{`"b"`}},
		{`true`, []string{`[{"a":null}]`, `"x"`}, []string{``, `x`}},
	} {
		g, err := JSONSchema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for _, text := range c.yes {
			if !match(t, g, text) {
				t.Errorf("%s: %s does not match", c.schema, text)
			}
		}
		for _, text := range c.not {
			if match(t, g, text) {
				t.Errorf("%s: %s matches", c.schema, text)
			}
		}
	}
}

func TestSchemaRefusals(t *testing.T) {
	for schema, want := range map[string]string{
		`{`:                "schema is not JSON",
		`1`:                "schema at # is 1, want an object",
		`{"type":"float"}`: `schema at #: type "float" is not one of JSON's`,
		`{"not":{}}`:       `schema at #: "not" is not supported here`,
		`{"type":"object","properties":{"a":{"type":"integer","multipleOf":3}}}`: `schema at #/properties/a: "multipleOf" is not supported here`,
		`{"type":"object","patternProperties":{}}`:                               `"patternProperties" is not supported here`,
		`{"type":"array","uniqueItems":true}`:                                    `"uniqueItems" is not supported here`,
		`{"type":"string","format":"hostname"}`:                                  `format "hostname" is not supported`,
		`{"type":"string","pattern":"(?=a)"}`:                                    `schema at #: pattern`,
		`{"type":"string","pattern":"a","minLength":2}`:                          "not supported together",
		`{"type":"number","minimum":0.5}`:                                        "minimum is 0.5, want a whole number",
		`{"type":"integer","minimum":2,"maximum":1}`:                             "nothing can match",
		`{"type":"object","required":["a"]}`:                                     `"a" is required and not in properties`,
		`{"$ref":"http://example.com/x"}`:                                        "want a place in this schema",
		`{"$ref":"#/$defs/x"}`:                                                   `$ref #/$defs/x: there is no "$defs"`,
		`{"$ref":"#"}`:                                                           "a rule begins with itself",
		`{"anyOf":[{"$ref":"#/anyOf/1"},{"$ref":"#/anyOf/0"}]}`:                  "a rule begins with itself",
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`:                       "oneOf/0 and oneOf/1 cannot be told apart",
		`{"allOf":[{},{}]}`:                                                      "allOf of 2 schemas is not supported",
		`{"type":"object","properties":{"a":{},"a":{}}}`:                         `has "a" twice`,
		`{"enum":[]}`:                       "enum is [], want a list",
		`{"type":"integer","enum":["a"]}`:   "no value of enum or const is of its type",
		`{"type":"array","minItems":-1}`:    "minItems is -1, want a whole number from 0",
		`{"type":"string","maxLength":1e9}`: "maxLength is 1e9",
		`false`:                             "nothing can match",
		strings.Repeat(`{"type":"array","items":`, 70) + `{}` + strings.Repeat(`}`, 70): "nests deeper than 64",
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`:                      "at most 262144 are read",
	} {
		if _, err := JSONSchema([]byte(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", schema, err, want)
		}
	}
}

// TestBlowUpIsAnError meets a pattern whose states double with each byte.
func TestBlowUpIsAnError(t *testing.T) {
	g, err := Regex(`[ab]*a[ab]{60}`)
	if err != nil {
		t.Fatal(err)
	}
	text, seed := make([]byte, 1<<19), uint32(1)
	for i := range text {
		seed = seed*1664525 + 1013904223
		text[i] = "ab"[seed>>31]
	}
	if _, err := g.Match(string(text)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error is %v, want %v", err, ErrTooLarge)
	}
	if _, err := g.Match("a"); err != nil {
		t.Errorf("after that: %v", err)
	}
}
