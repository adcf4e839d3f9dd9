package jinja

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// TestRefusedByName lists what jinja2 has and this package has not: each must say what it is.
func TestRefusedByName(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"{% import 'a' as b %}", "tag 'import'"},
		{"{% from 'a' import b %}", "tag 'from'"},
		{"{% include 'a' %}", "tag 'include'"},
		{"{% extends 'a' %}", "tag 'extends'"},
		{"{% block a %}{% endblock %}", "tag 'block'"},
		{"{% autoescape true %}{% endautoescape %}", "tag 'autoescape'"},
		{"{% for x in y recursive %}{% endfor %}", "recursive loops"},
		{"{{ self }}", "'self'"},
		{"{{ x|random }}", "filter 'random'"},
		{"{{ x|urlize }}", "filter 'urlize'"},
		{"{{ x|xmlattr }}", "filter 'xmlattr'"},
		{"{{ x|pprint }}", "filter 'pprint'"},
		{"{{ x|urlencode }}", "filter 'urlencode'"},
		{"{{ x|wordwrap }}", "filter 'wordwrap'"},
		{"{{ x|striptags }}", "filter 'striptags'"},
		{"{{ x|filesizeformat }}", "filter 'filesizeformat'"},
		{"{{ ['a']|map('urlize')|list }}", "filter 'urlize'"},
		{"{% if false %}{{ x|urlize }}{% endif %}", "filter 'urlize'"},
		{"{{ lipsum() }}", "function 'lipsum'"},
		{"{{ cycler(1) }}", "function 'cycler'"},
		{"{{ joiner() }}", "function 'joiner'"},
		{"{{ 'a'.encode() }}", "str method 'encode'"},
		{"{{ 'a'.translate({}) }}", "str method 'translate'"},
		{"{{ 'a'.expandtabs() }}", "str method 'expandtabs'"},
		{"{{ (1).real }}", "attribute 'real' of 'int'"},
		{"{{ 1.5.hex() }}", "attribute 'hex' of 'float'"},
		{"{{ '\\N{BULLET}' }}", `escape \N{...}`},
		{"{{ '\\ud800' }}", "is no character"},
		{"{{ x[1:2, 3] }}", "slices inside a tuple"},
		{"{{ (-8) ** 0.5 }}", "complex numbers"},
		{"{{ 'a'.upper }}", "printing a 'builtin_function_or_method'"},
		{"{{ [1]|map('string') }}", "printing a 'generator'"},
		{"{{ 'ab' is sameas 'ab' }}", "sameas of two equal str"},
		{"{{ ('%s'|e) % 1 }}", "% formatting of a Markup"},
		{"{{ ('{}'|e).format(1) }}", "format of a Markup"},
		{"{{ '{:{}}'.format(1, 2) }}", "fields inside the fields"},
		{"{{ '{!a}'.format(1) }}", "conversion !a"},
		{"{{ strftime_now('%q') }}", "strftime directive %q"},
		{"{{ strftime_now('%s') }}", "strftime directive %s"},
		{"{{ strftime_now('%_d') }}", "strftime directive %_"},
	} {
		out, err := render(c.source, NewMap())
		if err == nil {
			t.Errorf("%s: no error, %q came out", c.source, out)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q does not name %q", c.source, err, c.want)
		}
	}
}

// TestErrorsNameTemplateAndLine wants the line where a fault is, in the text and while running.
func TestErrorsNameTemplateAndLine(t *testing.T) {
	for source, want := range map[string]string{
		"a\nb\n{{ x.y }}":            "template test:3: 'x' is undefined",
		"a\n{% if x.y %}{% endif %}": "template test:2: 'x' is undefined",
		"{{ m.y.z }}":                `template test:1: "dict object" has no attribute "y"`,
		"{{ l[5].z }}":               "template test:1: list object has no element 5",
		"\n\n{{ 'a' +\n 1 }}":        "template test:3: can only concatenate str (not \"int\") to str",
		"{# a\n#}{{ 1|nope }}":       "template test:2: no filter named 'nope'",
		"\n{{ 1 is nope }}":          "template test:2: no test named 'nope'",
		"\n{{ 1 }":                   "template test:2: unexpected '}'",
		"\n{% if %}":                 "template test:2: expected an expression, got 'end of statement block'",
		"\n{% for x in y %}\n":       "template test:2: unexpected end of template, looking for 'endfor' or 'else'",
		"{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}{{ m() }}": "template test:2: division by zero",
		"\n{{ raise_exception('roles must alternate') }}":     "template test:2: roles must alternate",
		"{{ l.append(1) }}":               "template test:1: access to attribute 'append' of 'list' object is unsafe.",
		"{{ m.__class__.x }}":             "template test:1: access to attribute '__class__' of 'dict' object is unsafe.",
		"{{ [1]|map('nope')|list }}":      "template test:1: no filter named 'nope'",
		"{{ m()  }}":                      "template test:1: 'dict' object is not callable",
		"{% for a, b in l %}{% endfor %}": "template test:1: cannot unpack non-iterable int object",
	} {
		vars := NewMap()
		vars.Set("m", NewMap())
		vars.Set("l", List(Int(1)))
		out, err := render(source, vars)
		if err == nil || err.Error() != want {
			t.Errorf("%q: gave %q and error\n %v, want\n %s", source, out, err, want)
		}
		var place *Error
		if err != nil && !errors.As(err, &place) {
			t.Errorf("%q: %T is no *Error", source, err)
		}
	}
}

// TestRenderTogether shares one template between goroutines; run it with -race.
func TestRenderTogether(t *testing.T) {
	tmpl, err := Parse("shared", "{% macro m(x) %}{% set y = x * 2 %}{{ y }}{% endmacro %}{% for i in l if i %}{{ m(i) }}{{ loop.index }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	vars := NewMap()
	vars.Set("l", List(Int(0), Int(1), Int(2)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if out, err := tmpl.Render(vars, Env{}); out != "2142" || err != nil {
					t.Errorf("gave %q, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestFromJSON(t *testing.T) {
	for raw, want := range map[string]string{
		`{"b": 1, "a": [1.0, 2e0, -0, -0.0], "b": 2}`: "{'b': 2, 'a': [1.0, 2.0, 0, -0.0]}",
		`18446744073709551616`:                        "18446744073709551616",
		`1e999`:                                       "inf",
		`"\ud83d\ude00\u00e9\\ud800"`:                 `'😀é\\ud800'`,
		` null `:                                      "None",
		`[true, false]`:                               "[True, False]",
		`{"": {}}`:                                    "{'': {}}",
	} {
		v, err := FromJSON([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got, err := (&run{steps: maxSteps, bytes: maxAlloc}).repr(v)
		if got != want || err != nil {
			t.Errorf("%s: gave %s, %v, want %s", raw, got, err, want)
		}
	}
}

func TestFromJSONRefuses(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `[1,]`, `{"a" 1}`, `1 2`, `NaN`, `'a'`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00\ud800"`, "\"\xff\"",
		strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2), strings.Repeat("9", 10000), `01`, `"a`,
	} {
		if v, err := FromJSON([]byte(raw)); err == nil {
			t.Errorf("%.40q: no error, gave %v", raw, v)
		}
	}
}

func TestConstructors(t *testing.T) {
	vars := NewMap()
	vars.Set("a", List(None(), Bool(true), Int(-3), Float(1.5), String("x")))
	vars.Set("b", Int(1))
	vars.Set("b", Int(2))
	if v, ok := vars.Get("b"); !ok || v != Int(2) || vars.Len() != 2 {
		t.Errorf("b is %v of %d", v, vars.Len())
	}
	if out, err := render("{{ a }}{{ b }}", vars); out != "[None, True, -3, 1.5, 'x']2" || err != nil {
		t.Errorf("gave %q, %v", out, err)
	}
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Parse("bench", "{{- bos_token -}}{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}")
	if err != nil {
		b.Fatal(err)
	}
	vars := NewMap()
	vars.Set("bos_token", String("<s>"))
	vars.Set("add_generation_prompt", Bool(true))
	message := NewMap()
	message.Set("role", String("user"))
	message.Set("content", String(strings.Repeat("word ", 200)))
	vars.Set("messages", List(message, message, message))
	for b.Loop() {
		if _, err := tmpl.Render(vars, Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
