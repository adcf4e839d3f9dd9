package jobs

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a job file, which is written by hand. The YAML parser needs time that grows
// with the square of a line's length and of the nesting; within these bounds that is a second.
const (
	MaxBytes = 256 << 10
	maxLine  = 4 << 10 // bytes
	maxDepth = 32      // collections in each other: a job needs six, template variables some more
)

// StdinPath is the path of an input that comes from standard input.
const StdinPath = "-"

// Parse reads the jobs of a file. name is what errors call it; relative paths in it are
// taken from dir. The error is an [Errors].
func Parse(name, dir string, source []byte) ([]Job, error) {
	d := &decoder{file: name, source: source, dir: dir, places: map[string]*token.Position{}}
	body := d.document()
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	jobs := d.jobs(body)
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	return jobs, nil
}

// document checks the size and nesting of the source and returns its only document.
func (d *decoder) document() ast.Node {
	if len(d.source) > MaxBytes {
		d.fail(&token.Position{Line: 1, Column: 1}, "", "file has %d bytes, at most %d", len(d.source), MaxBytes)
		return nil
	}
	d.source = bytes.TrimPrefix(d.source, []byte("\ufeff"))
	for i, line := range bytes.Split(d.source, []byte{'\n'}) {
		if len(line) > maxLine {
			d.fail(&token.Position{Line: i + 1, Column: 1}, "", "line has %d bytes, at most %d; fold long text with | or >", len(line), maxLine)
			return nil
		}
	}
	tokens := lexer.Tokenize(string(d.source))
	if at := tooDeep(tokens); at != nil {
		d.fail(at.Position, "", "nested deeper than %d", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		d.syntax(err)
		return nil
	}
	return d.only(file)
}

// tooDeep returns the first token below maxDepth open collections. A run of block
// markers ("- - -", "? ? ?") opens one each.
func tooDeep(tokens token.Tokens) *token.Token {
	open, run := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open--
		case token.SequenceEntryType, token.MappingKeyType:
			run++
		default:
			run = 0
		}
		if open > maxDepth || run > maxDepth {
			return t
		}
	}
	return nil
}

// only refuses a file of no document and of several.
func (d *decoder) only(file *ast.File) ast.Node {
	if len(file.Docs) > 1 && file.Docs[1].Start != nil {
		d.fail(file.Docs[1].Start.Position, "", "second document; a job file has one")
		return nil
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.fail(&token.Position{Line: 1, Column: 1}, "", "file holds no job; it needs version and jobs")
		return nil
	}
	return file.Docs[0].Body
}

// syntax records an error of the YAML parser, which knows its token.
func (d *decoder) syntax(err error) {
	at := &token.Position{Line: 1, Column: 1}
	problem := err.Error()
	if e, ok := err.(interface {
		GetToken() *token.Token
		GetMessage() string
	}); ok && e.GetToken() != nil {
		at, problem = e.GetToken().Position, e.GetMessage()
	}
	d.fail(at, "", "%s", problem)
}

// resolve makes a path of the job file absolute or relative to the working directory.
func (d *decoder) resolve(path string) string {
	if filepath.IsAbs(path) || path == StdinPath {
		return path
	}
	return filepath.Join(d.dir, path)
}

// BuiltinPrefix marks a model that is part of the program.
const BuiltinPrefix = "builtin:"

// path reads a path; names that start with one of the fixed words are no files.
func (d *decoder) path(into *Path, want string, fixed ...string) func(value) {
	return func(v value) {
		s, ok := d.readText(v)
		if !ok {
			return
		}
		if s == "" {
			d.bad(v, "is empty text, want %s", want)
			return
		}
		*into = Path{Name: s, File: d.resolve(s)}
		for _, word := range fixed {
			if strings.HasPrefix(s, word) {
				into.File = s
			}
		}
	}
}
