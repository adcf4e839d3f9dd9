package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pieces is a vocabulary of single bytes and of texts that JSON and English are made of. The last id ends a reply.
func pieces(t testing.TB) (*Vocab, []string) {
	t.Helper()
	var texts []string
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	for _, word := range strings.Fields(`{" ": "," "} }, [" "] ], true false null the name value \u00 \" é 日本 😀 12 0. ": 2026- e+ abc abd`) {
		texts = append(texts, word, " "+word, word+" ")
	}
	texts = append(texts, "\n  ", "\n    ", "", "")
	end := int32(len(texts) - 1)
	v, err := NewVocab(len(texts), func(id int32) string { return texts[id] }, []int32{end})
	if err != nil {
		t.Fatal(err)
	}
	return v, texts
}

// TestMaskIsWhatStepsSay compares each mask on the way of a random reply with a walk of every token by itself.
func TestMaskIsWhatStepsSay(t *testing.T) {
	v, texts := pieces(t)
	g, err := JSONSchema([]byte(wide))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		path := g.With(v).Start()
		for range 60 {
			bits, err := path.Allowed()
			if err != nil {
				t.Fatal(err)
			}
			for id, text := range texts {
				at := path.at
				for i := range len(text) {
					at = g.pool.step(at, text[i])
				}
				want := text != "" && at != never || id == len(texts)-1 && g.pool.nodes[path.at].empty
				if got := bits[id/64]>>(id%64)&1 == 1; got != want {
					t.Fatalf("token %q: %v", text, got)
				}
			}
			path.Push(choose(random, bits))
		}
	}
}

// choose takes one of the allowed ids.
func choose(random *rand.Rand, bits []uint64) int32 {
	var ids []int32
	for i, w := range bits {
		for b := range 64 {
			if w>>b&1 == 1 {
				ids = append(ids, int32(64*i+b))
			}
		}
	}
	return ids[random.IntN(len(ids))]
}

// wide uses every part of the subset.
const wide = `{
	"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer", "minimum": -3, "maximum": 1200},
		"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2}}, "required": ["v"], "additionalProperties": false}},
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1, "maxLength": 12},
		"tags": {"type": "array", "items": {"enum": ["a", "b\"c", "d/e", 3, null]}, "minItems": 1, "maxItems": 4},
		"when": {"type": "string", "format": "date-time"},
		"id": {"type": "string", "format": "uuid"},
		"mail": {"type": "string", "format": "email"},
		"host": {"type": "string", "format": "ipv4"},
		"code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
		"has": {"type": "string", "pattern": "x+y"},
		"score": {"type": "number", "minimum": 0, "exclusiveMaximum": 10},
		"cold": {"type": "number", "minimum": -20, "maximum": -1},
		"any": {},
		"raw": {"type": "number"},
		"pair": {"prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": false},
		"shape": {"oneOf": [
			{"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
			{"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "integer", "exclusiveMinimum": 0}}, "required": ["kind", "w"]}]},
		"map": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
		"tree": {"$ref": "#/$defs/node"},
		"either": {"anyOf": [{"type": "boolean"}, {"type": "string", "maxLength": 3}]}
	},
	"required": ["name", "tags", "code", "score", "tree"],
	"additionalProperties": false
}`

// TestRepliesAreValid lets random models write, and an independent validator judge.
func TestRepliesAreValid(t *testing.T) {
	v, texts := pieces(t)
	for _, schema := range []string{wide, `{}`, `{"type":"object"}`, `{"type":"array","items":{"type":"number"}}`} {
		g, err := JSONSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		masks, judge := g.With(v), validator(t, schema)
		for seed := range uint64(250) {
			text := write(t, masks, texts, rand.New(rand.NewPCG(seed, 7)))
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if err := judge.Validate(value); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
}

func validator(t testing.TB, schema string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write makes a reply of random tokens. It likes what closes, and what the pattern of wide asks for, more the longer the
// reply is, so that it ends.
func write(t testing.TB, m *Masks, texts []string, random *rand.Rand) string {
	t.Helper()
	path, end := m.Start(), int32(len(texts)-1)
	var out strings.Builder
	for n := 0; n < 1<<14; n++ {
		bits, err := path.Allowed()
		if err != nil {
			t.Fatalf("after %q: %v", out.String(), err)
		}
		id := choose(random, bits)
		for _, like := range []int32{']', '}', int32("xy"[n%2]), '"', end} {
			if random.IntN(400) < n && bits[like/64]>>(like%64)&1 == 1 {
				id = like
			}
		}
		if id == end {
			return out.String()
		}
		out.WriteString(texts[id])
		path.Push(id)
	}
	t.Fatalf("reply does not end: …%q", out.String()[max(0, out.Len()-300):])
	return ""
}

func TestVocabRefusals(t *testing.T) {
	if _, err := NewVocab(2, func(int32) string { return "a" }, nil); err == nil {
		t.Error("no end token: no error")
	}
	v, err := NewVocab(2, func(int32) string { return "a" }, []int32{1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Choice([]string{"ab"})
	if err != nil {
		t.Fatal(err)
	}
	path := g.With(v).Start()
	path.Push(0)
	if _, err := path.Allowed(); !errors.Is(err, ErrUnsatisfiable) {
		t.Errorf("no token spells b: %v, want %v", err, ErrUnsatisfiable)
	}
}

// FuzzSchema holds what compiles to JSON: whatever a random model writes of it parses.
func FuzzSchema(f *testing.F) {
	f.Add(wide, uint64(1))
	f.Add(`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, uint64(2))
	f.Add(`{"oneOf":[{"$ref":"#"},{"type":"null"}]}`, uint64(2))
	v, texts := pieces(f)
	f.Fuzz(func(t *testing.T, schema string, seed uint64) {
		g, err := JSONSchema([]byte(schema))
		if err != nil {
			return
		}
		path, random := g.With(v).Start(), rand.New(rand.NewPCG(seed, 3))
		var out strings.Builder
		for range 200 {
			bits, err := path.Allowed()
			if err != nil {
				return // a pattern that no text ends, or too large a grammar
			}
			id := choose(random, bits)
			if int(id) == len(texts)-1 {
				if !json.Valid([]byte(out.String())) {
					t.Fatalf("%s: wrote %q", schema, out.String())
				}
				return
			}
			out.WriteString(texts[id])
			path.Push(id)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	v, _ := pieces(b)
	g, err := JSONSchema([]byte(wide))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := v.mask(&g.pool, g.start); err != nil {
			b.Fatal(err)
		}
	}
}
