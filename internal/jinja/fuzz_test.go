package jinja

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// Fuzzing looks for panics and for what runs on, so it gives each template a small budget.
const (
	fuzzSteps = 100000
	fuzzBytes = 8 << 20
)

func seedTemplates(f *testing.F, add func(source string, vars []byte)) {
	paths, _ := filepath.Glob("testdata/templates/*.jinja")
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(string(source), []byte(`{"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": true}`))
	}
	file, err := os.ReadFile("testdata/features.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		v, err := FromJSON(lines.Bytes())
		if err != nil {
			f.Fatal(err)
		}
		source, _ := v.(*Map).Get("t")
		s, _ := text(source)
		add(s, []byte(`{"d": {"a": 1, "c": [1, 2]}, "l": [{"n": "b", "v": 2}], "v": 7}`))
	}
}

func FuzzParse(f *testing.F) {
	seedTemplates(f, func(source string, _ []byte) { f.Add(source) })
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse("fuzz", source)
		if (tmpl == nil) == (err == nil) {
			t.Fatalf("Parse gave %v and %v", tmpl, err)
		}
	})
}

func FuzzRender(f *testing.F) {
	seedTemplates(f, func(source string, vars []byte) { f.Add(source, vars) })
	f.Fuzz(func(t *testing.T, source string, raw []byte) {
		vars := NewMap()
		if v, err := FromJSON(raw); err == nil {
			addAll(vars, v)
		}
		tmpl, err := Parse("fuzz", source)
		if err != nil {
			return
		}
		out, err := tmpl.render(&run{lib: tmpl.lib, vars: vars, env: Env{Now: now}, steps: fuzzSteps, bytes: fuzzBytes})
		if !utf8.ValidString(out) {
			t.Fatalf("output is not UTF-8: %q", out)
		}
		if len(out) > fuzzBytes {
			t.Fatalf("%d bytes came out of a budget of %d", len(out), fuzzBytes)
		}
		if err != nil && err.Error() == "" {
			t.Fatal("an error says nothing")
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.5, "\ud83d\ude00", null, true], "a": {"b": 18446744073709551616}}`))
	f.Add([]byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := FromJSON(raw)
		if err != nil {
			return
		}
		r := &run{steps: maxSteps, bytes: maxAlloc}
		s, err := r.str(v)
		if err == nil && !utf8.ValidString(s) {
			t.Fatalf("not UTF-8: %q", s)
		}
	})
}
