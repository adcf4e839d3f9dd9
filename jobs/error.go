package jobs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// Error is one thing that is wrong with a job file.
type Error struct {
	File         string
	Line, Column int    // from 1
	Path         string // of the value, as jobs[0].input.path; empty for the whole file
	Problem      string
	Source       string // the line
}

// Error is "file:line:column: path: problem".
func (e *Error) Error() string {
	at := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path == "" {
		return at + e.Problem
	}
	return at + e.Path + ": " + e.Problem
}

// Excerpt is the line with a caret under the column, empty for a line too long to show.
func (e *Error) Excerpt() string {
	if len(e.Source) > maxExcerpt {
		return ""
	}
	lead := []rune(e.Source)
	lead = lead[:min(max(e.Column-1, 0), len(lead))]
	for i, r := range lead {
		if r != '\t' {
			lead[i] = ' '
		}
	}
	return fmt.Sprintf("%5d | %s\n      | %s^", e.Line, e.Source, string(lead))
}

// maxExcerpt is the longest line that still helps when it is shown.
const maxExcerpt = 240

// Errors is everything that is wrong with a job file, in the order of the file.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// maxErrors is how many errors one reading collects.
const maxErrors = 20

func (d *decoder) fail(at *token.Position, path, format string, args ...any) {
	if len(d.errs) == maxErrors {
		return
	}
	d.errs = append(d.errs, &Error{
		File: d.file, Line: at.Line, Column: at.Column, Path: path,
		Problem: fmt.Sprintf(format, args...), Source: d.line(at.Line),
	})
}

func (d *decoder) line(n int) string {
	rest := d.source
	for range n - 1 {
		_, after, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			return ""
		}
		rest = after
	}
	text, _, _ := bytes.Cut(rest, []byte{'\n'})
	return strings.TrimRight(string(text), "\r")
}
