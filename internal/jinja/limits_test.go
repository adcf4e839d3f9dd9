package jinja

import (
	"strings"
	"testing"
)

func render(source string, vars *Map) (string, error) {
	tmpl, err := Parse("test", source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(vars, Env{Now: now})
}

// renderBriefly renders with an eighth of the usual budget, so that tests of its end are fast.
func renderBriefly(source string) (string, error) {
	tmpl, err := Parse("test", source)
	if err != nil {
		return "", err
	}
	return tmpl.render(&run{lib: tmpl.lib, vars: NewMap(), env: Env{Now: now}, steps: maxSteps / 8, bytes: maxAlloc / 8})
}

// TestHostileTemplatesEndInOneError holds the sandbox: each of these would take all time or memory.
func TestHostileTemplatesEndInOneError(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"doubling string", "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}", "limit"},
		{"doubling list", "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "limit"},
		{"shared list printed", "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}", "limit"},
		{"shared list compared", "{% set a = namespace(s=[1]) %}{% set b = namespace(s=[1]) %}{% for i in range(60) %}{% set a.s = [a.s, a.s] %}{% set b.s = [b.s, b.s] %}{% endfor %}{{ a.s == b.s }}", "limit"},
		{"shared map dumped", "{% set ns = namespace(s={}) %}{% for i in range(60) %}{% set ns.s = {'a': ns.s, 'b': ns.s} %}{% endfor %}{{ ns.s|tojson }}", "limit"},
		{"shared tuple as key", "{% set ns = namespace(s=(1,)) %}{% for i in range(60) %}{% set ns.s = (ns.s, ns.s) %}{% endfor %}{{ {ns.s: 1} }}", "limit"},
		{"deep list printed", "{% set ns = namespace(s=[]) %}{% for i in range(10000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}", "nest"},
		{"deep tuple as key", "{% set ns = namespace(s=()) %}{% for i in range(10000) %}{% set ns.s = (ns.s,) %}{% endfor %}{{ {ns.s: 1} }}", "nest"},
		{"namespace in itself", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "nest"},
		{"generators over generators", "{% set ns = namespace(g=[1]) %}{% for i in range(10000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}", "nest"},
		{"endless macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nest"},
		{"two macros", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}", "nest"},
		{"calling twice", "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(90) }}", "limit"},
		{"loops in loops", strings.Repeat("{% for i in range(100000) %}", 5) + "{{ i }}" + strings.Repeat("{% endfor %}", 5), "limit"},
		{"empty loops", strings.Repeat("{% for i in range(100000) %}", 5) + strings.Repeat("{% endfor %}", 5), "limit"},
		{"big range", "{{ range(100001) }}", "range"},
		{"long repetition", "{{ 'abcd' * 1000000000 }}", "limit"},
		{"long list repetition", "{{ ([1] * 1000000000)|length }}", "limit"},
		{"repetition again and again", "{% for i in range(1000) %}{% set x = 'a' * 60000000 %}{% endfor %}", "limit"},
		{"big power", "{{ 10 ** 100000 }}", "limit"},
		{"power of power", "{% set ns = namespace(n=3) %}{% for i in range(50) %}{% set ns.n = ns.n * ns.n %}{% endfor %}", "limit"},
		{"wide format", "{{ '%1000000000d' % 1 }}", "limit"},
		{"wide str.format", "{{ '{:1000000000}'.format(1) }}", "limit"},
		{"wide center", "{{ 'a'|center(1000000000) }}", "limit"},
		{"wide ljust", "{{ 'a'.ljust(1000000000) }}", "limit"},
		{"wide zfill", "{{ 'a'.zfill(1000000000) }}", "limit"},
		{"wide indent", "{{ 'a b'|indent(1000000000) }}", "limit"},
		{"wide tojson", "{{ [1]|tojson(indent=1000000000) }}", "limit"},
		{"long replace", "{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}", "limit"},
		{"long join", "{% set x = 'a' * 1000000 %}{{ ([x] * 1000)|join }}", "limit"},
		{"long str.join", "{% set x = 'a' * 1000000 %}{{ x.join('b' * 1000) }}", "limit"},
		{"many batches", "{{ [1]|batch(1000000000, 0)|list }}", "limit"},
		{"many slices", "{{ [1]|slice(1000000000)|list }}", "limit"},
		{"slow search", "{% set x = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in x }}{% endfor %}", "limit"},
		{"slow strip", "{% set x = ' ' * 1000000 %}{% for i in range(100000) %}{{ x.strip() }}{% endfor %}", "limit"},
		{"slow index", "{% set x = 'é' * 1000000 %}{% for i in range(100000) %}{% set y = x[999999] %}{% endfor %}", "limit"},
		{"long arguments", "{% for i in range(100000) %}{% set x = dict(*[[]], **{}) %}{% set y = range(*range(100000)) %}{% endfor %}", "range"},
		{"sorting by a slow key", "{{ (['a' * 1000000] * 100000)|sort }}", "limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := renderBriefly(c.source)
			if err == nil {
				t.Fatalf("no error, %d bytes came out", len(out))
			}
			if !strings.HasPrefix(err.Error(), "template test:1: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not name its place and %q", err, c.want)
			}
		})
	}
}

// TestHostileTextsAreRefused holds the parser: none of these may take the stack.
func TestHostileTextsAreRefused(t *testing.T) {
	for name, source := range map[string]string{
		"long":         strings.Repeat("a", maxSource+1),
		"brackets":     "{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}",
		"lists":        "{{ " + strings.Repeat("[", 50000),
		"maps":         "{{ " + strings.Repeat("{1:", 50000),
		"nots":         "{{ " + strings.Repeat("not ", 50000) + "1 }}",
		"minuses":      "{{ " + strings.Repeat("- ", 100000) + "1 }}",
		"sum":          "{{ 1" + strings.Repeat("+1", 100000) + " }}",
		"dots":         "{{ a" + strings.Repeat(".a", 100000) + " }}",
		"filters":      "{{ a" + strings.Repeat("|e", 100000) + " }}",
		"calls":        "{{ a" + strings.Repeat("()", 100000) + " }}",
		"ifs":          strings.Repeat("{% if 1 %}", 10000),
		"fors":         strings.Repeat("{% for x in y %}", 10000),
		"macros":       strings.Repeat("{% macro m() %}", 10000),
		"inline ifs":   "{{ 1" + strings.Repeat(" if 1 else 1", 10000) + " }}",
		"short ifs":    "{{ 1" + strings.Repeat(" if 1", 10000) + " }}",
		"filter block": "{% filter e" + strings.Repeat("|e", 100000) + " %}{% endfilter %}",
		"not UTF-8":    "a\xff",
		"no end":       "{% raw %} {{ {% endra %}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("test", source); err == nil || !strings.HasPrefix(err.Error(), "template test:1: ") {
				t.Errorf("error %v does not name template and line", err)
			}
		})
	}
}

// TestManyNamesParse holds the walk over scopes to a cost that grows with the text alone.
func TestManyNamesParse(t *testing.T) {
	var source strings.Builder
	for i := 0; source.Len() < maxSource-100; i++ {
		name := "v" + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26))
		source.WriteString("{% if " + name + " %}{% set " + name + "=1 %}{% endif %}")
	}
	if _, err := Parse("test", source.String()); err != nil {
		t.Error(err)
	}
	nested := strings.Repeat("{% for a in b %}", maxNesting-10) + strings.Repeat("{{ a }}", 30000) + strings.Repeat("{% endfor %}", maxNesting-10)
	if _, err := Parse("test", nested); err != nil {
		t.Error(err)
	}
}
