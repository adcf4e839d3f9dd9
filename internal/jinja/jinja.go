// Package jinja renders the chat templates of Hugging Face checkpoints as Python's jinja2 does
// when transformers sets it up: an immutable sandbox with trim_blocks, lstrip_blocks, loop
// controls, the generation tag and a tojson that keeps key order.
//
// Start at Parse, then Template.Render. What a template may print is what Python prints: ordered
// maps, int apart from float, str() and repr(), an undefined that fails where jinja2's fails.
// A template is hostile input: its size, its nesting, its steps, its memory and its output are
// bounded (limits.go), and whatever jinja2 knows and this package does not is refused by name.
//
// Not here, always refused: import, include, extends, block, autoescape, recursive loops.
package jinja

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Template is a parsed template. It never changes, so goroutines may share one.
type Template struct {
	name  string
	body  []stmt
	root  *layout
	enter []entry
	lib   *library
}

// Env is what a template can learn of the world around it.
type Env struct {
	Now time.Time // what strftime_now formats, in its own location
}

// Error is a fault of a template, in its text or while it ran.
type Error struct {
	Template string
	Line     int
	Err      error
}

func (e *Error) Error() string { return fmt.Sprintf("template %s:%d: %v", e.Template, e.Line, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a template. Its errors, and those of Render, are *Error; name is only for them.
func Parse(name, source string) (*Template, error) {
	t := &Template{name: name, lib: newLibrary()}
	if len(source) > maxSource {
		return nil, t.locate(fmt.Errorf("template of %d bytes is over the limit of %d", len(source), maxSource))
	}
	if !utf8.ValidString(source) {
		return nil, t.locate(errors.New("template is not UTF-8"))
	}
	tokens, err := lex(source)
	if err == nil {
		t.body, err = parse(tokens)
	}
	if err == nil {
		t.root, t.enter, err = resolve(t.body, t.lib)
	}
	if err != nil {
		return nil, t.locate(err)
	}
	return t, nil
}

// Render runs the template with vars as its context: messages, tools, add_generation_prompt and
// whatever else it reads. It changes neither the template nor vars.
func (t *Template) Render(vars *Map, env Env) (string, error) {
	return t.render(&run{lib: t.lib, vars: vars, env: env, steps: maxSteps, bytes: maxAlloc})
}

func (t *Template) render(r *run) (string, error) {
	f := newFrame(t.root, nil)
	out := &buffer{}
	err := r.enterScope(f, t.enter)
	if err == nil {
		_, err = execAll(r, f, out, t.body)
	}
	if err != nil {
		return "", t.locate(err)
	}
	return out.String(), nil
}

// locate gives an error its template, and line 1 when it has none.
func (t *Template) locate(err error) error {
	if placed, ok := err.(*Error); ok {
		placed.Template = t.name
		return placed
	}
	return &Error{t.name, 1, err}
}

// onLine gives an error the line it happened on, unless a deeper node already did.
func onLine(line int, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*Error); ok {
		return err
	}
	return &Error{Line: line, Err: err}
}

func failAt(line int, format string, args ...any) error {
	return &Error{Line: line, Err: fmt.Errorf(format, args...)}
}
