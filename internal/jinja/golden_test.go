package jinja

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var extra = flag.String("extra", "", "a folder that oracle.py extra or random made, to be compared too")

var now = time.Date(2026, 3, 7, 16, 5, 9, 123456000, time.UTC)

// TestTemplatesAsJinja2 compares real templates over conversations with what jinja2 made of them.
func TestTemplatesAsJinja2(t *testing.T) { compareTemplates(t, "testdata", "testdata/templates") }

// TestFeaturesAsJinja2 does so for small templates, one feature each.
func TestFeaturesAsJinja2(t *testing.T) { compareFeatures(t, "testdata", false) }

func TestExtraAsJinja2(t *testing.T) {
	if *extra == "" {
		t.Skip("no -extra folder")
	}
	compareTemplates(t, *extra, *extra)
	compareFeatures(t, *extra, true)
}

func readGolden(t *testing.T, folder string) map[string]*string {
	t.Helper()
	packed, err := os.Open(filepath.Join(folder, "golden.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]*string{}
	if err := json.NewDecoder(plain).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// outcome renders a template that may have failed to parse; an error is nil.
func outcome(tmpl *Template, failed error, vars *Map) (*string, error) {
	if failed != nil {
		return nil, failed
	}
	s, err := tmpl.Render(vars, Env{Now: now})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// differs says how an outcome is not the wanted one; it is empty when they agree.
func differs(want, got *string, err error) string {
	switch {
	case want == nil && got == nil:
		return ""
	case want == nil:
		return fmt.Sprintf("jinja2 fails, we give %q", *got)
	case got == nil:
		return fmt.Sprintf("jinja2 gives %q, we fail: %v", clip(*want, 0), err)
	case *want == *got:
		return ""
	}
	at := 0
	for at < len(*want) && at < len(*got) && (*want)[at] == (*got)[at] {
		at++
	}
	return fmt.Sprintf("differ at byte %d:\n jinja2 %q\n we     %q", at, clip(*want, at), clip(*got, at))
}

func clip(s string, at int) string { return s[max(0, at-40):min(len(s), at+80)] }

func compareTemplates(t *testing.T, goldenFolder, folder string) {
	golden := readGolden(t, goldenFolder)
	cases := readConversations(t)
	paths, err := filepath.Glob(filepath.Join(folder, "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, failed := Parse(name, string(source))
			equal, failures := 0, 0
			for _, c := range cases {
				want, ok := golden[name+"/"+c.name]
				if !ok {
					t.Fatalf("%s: no golden outcome", c.name)
				}
				got, err := outcome(tmpl, failed, c.vars)
				if diff := differs(want, got, err); diff != "" {
					t.Errorf("%s: %s", c.name, diff)
					continue
				}
				equal++
				if want == nil {
					failures++
				}
			}
			t.Logf("%d of %d equal, %d of them errors", equal, len(cases), failures)
		})
	}
}

type renderCase struct {
	name string
	vars *Map
}

// readConversations makes the same grid of variables as oracle.py.
func readConversations(t *testing.T) []renderCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := FromJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	field := func(v Value, name string) Value {
		f, _ := v.(*Map).Get(name)
		return f
	}
	var cases []renderCase
	for _, chat := range field(v, "conversations").(*list).items {
		for n, tools := range field(v, "tools").(*list).items {
			for _, generate := range []bool{false, true} {
				vars := NewMap()
				vars.Set("documents", None())
				addAll(vars, field(v, "vars"))
				addAll(vars, field(chat, "vars"))
				vars.Set("messages", field(chat, "messages"))
				vars.Set("tools", tools)
				vars.Set("add_generation_prompt", Bool(generate))
				name, _ := text(field(chat, "name"))
				cases = append(cases, renderCase{fmt.Sprintf("%s/%d/%v", name, n, generate), vars})
			}
		}
	}
	return cases
}

func addAll(to *Map, from Value) {
	if m, ok := from.(*Map); ok {
		for i, key := range m.keys {
			s, _ := text(key)
			to.Set(s, m.values[i])
		}
	}
}

// compareFeatures may let cases pass that we refuse by name: made-up templates hit upon them.
func compareFeatures(t *testing.T, folder string, mayRefuse bool) {
	golden := readGolden(t, folder)
	file, err := os.ReadFile(filepath.Join(folder, "features.jsonl"))
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 1<<20)
	equal, refused, n := 0, 0, 0
	for lines.Scan() {
		n++
		source, vars := featureCase(t, lines.Bytes())
		want, ok := golden[fmt.Sprintf("features.jsonl:%d", n)]
		if !ok {
			t.Fatalf("line %d: no golden outcome", n)
		}
		tmpl, failed := Parse("feature", source)
		got, err := outcome(tmpl, failed, vars)
		if mayRefuse && want != nil && err != nil && strings.HasSuffix(err.Error(), "not supported") {
			refused++
			continue
		}
		if diff := differs(want, got, err); diff != "" {
			t.Errorf("features.jsonl:%d: %s\n of %q", n, diff, source)
			continue
		}
		equal++
	}
	t.Logf("%d of %d equal, %d refused by name", equal, n, refused)
}

func featureCase(t *testing.T, line []byte) (source string, vars *Map) {
	t.Helper()
	v, err := FromJSON(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	vars = NewMap()
	given, _ := v.(*Map).Get("v")
	addAll(vars, given)
	field, _ := v.(*Map).Get("t")
	source, _ = text(field)
	return source, vars
}
