// Package msl compiles Metal Shading Language away from a Mac. It turns the text of a
// kernel file into a translation unit for clang's "C++ for OpenCL" mode, which the shim in
// shim/ makes nearly Metal, and from there into a shared object for the checking runtime in
// rt/ or into PTX. It also writes the Go side of every kernel's parameter list, so that host
// and kernel cannot drift.
//
// Start with [Parse], then [Toolchain]. Everything between a kernel's braces stays the
// author's text; only parameter lists and threadgroup variables are rewritten. The package
// is a build and test tool: nothing of it is part of the command.
package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Unit is one preprocessed kernel file.
type Unit struct {
	File    string // without the folder and ".metal"
	Kernels []Kernel
	Structs []Struct

	text string
}

// Kernel is a kernel function: its parameters, and where its text lies in the unit.
type Kernel struct {
	Name    string
	Threads int // of a threadgroup
	Params  []Param

	start, open, shut, brace, end int // offsets of [[, (, ), { and }
}

// Args is the struct of the kernel's constant parameter.
func (k Kernel) Args() string {
	for _, p := range k.Params {
		if p.Kind == Constant {
			return p.Type
		}
	}
	return ""
}

// ParamKind says how a parameter arrives.
type ParamKind uint8

// The kinds of parameter: a buffer that is only read, one that is written, the argument
// struct, and a position that the hardware supplies.
const (
	ReadBuffer ParamKind = iota
	WriteBuffer
	Constant
	Position
)

// Param is one parameter. Index is its [[buffer(index)]], Attr the attribute of a Position.
type Param struct {
	Kind       ParamKind
	Index      int
	Type, Name string
	Attr       string
}

// Struct is an argument struct: fields of four bytes each, so that no layout rule can differ.
type Struct struct {
	Name   string
	Fields []Field
}

// Field is a member, its Type "uint" or "float".
type Field struct{ Type, Name string }

var (
	kernelHead = regexp.MustCompile(`(?:\[\[\s*max_total_threads_per_threadgroup\((\d+)\)\s*\]\]\s*)?\bkernel\s+void\s+(\w+)\s*\(`)
	attribute  = regexp.MustCompile(`\[\[\s*(\w+)\s*(?:\(\s*(\w+)\s*\))?\s*\]\]`)
	lastWord   = regexp.MustCompile(`(\w+)\s*$`)
	lineMarker = regexp.MustCompile(`(?m)^#.*$`)
	argsStruct = regexp.MustCompile(`\bstruct\s+(\w+Args)\s*\{([^{}]*)\}\s*;`)
	fieldDecl  = regexp.MustCompile(`^(uint|float)\s+(\w+)$`)
)

// positions are the attributes that a kernel may ask for, with the types they may have.
var positions = map[string][]string{
	"threadgroup_position_in_grid":   {"uint", "uint2", "uint3"},
	"thread_index_in_threadgroup":    {"uint"},
	"thread_index_in_simdgroup":      {"uint"},
	"simdgroup_index_in_threadgroup": {"uint"},
}

// Parse reads the preprocessed text of a kernel file and checks the rules of parameter
// lists, Metal's and this project's: one argument struct, last, and a stated group size.
func Parse(file, text string) (*Unit, error) {
	u := &Unit{File: file, text: text}
	for _, m := range kernelHead.FindAllStringSubmatchIndex(text, -1) {
		k, err := parseKernel(text, m)
		if err != nil {
			return nil, fmt.Errorf("%s.metal: kernel %s: %w", file, k.Name, err)
		}
		u.Kernels = append(u.Kernels, k)
	}
	for _, m := range argsStruct.FindAllStringSubmatch(text, -1) {
		s, err := parseStruct(m[1], m[2])
		if err != nil {
			return nil, fmt.Errorf("%s.metal: struct %s: %w", file, s.Name, err)
		}
		u.Structs = append(u.Structs, s)
	}
	return u, nil
}

func parseKernel(text string, m []int) (Kernel, error) {
	k := Kernel{Name: text[m[4]:m[5]], start: m[0], open: m[1] - 1}
	if m[2] < 0 {
		return k, fmt.Errorf("no [[max_total_threads_per_threadgroup(n)]] before it")
	}
	k.Threads, _ = strconv.Atoi(text[m[2]:m[3]])
	if k.Threads%32 != 0 || k.Threads < 32 || k.Threads > 1024 {
		return k, fmt.Errorf("%d threads in a threadgroup, want a multiple of 32 up to 1024", k.Threads)
	}
	k.shut = matching(text, k.open)
	if k.shut < 0 {
		return k, fmt.Errorf("unbalanced parameter list")
	}
	k.brace = k.shut + strings.IndexByte(text[k.shut:], '{')
	if k.brace < k.shut {
		return k, fmt.Errorf("no body")
	}
	if k.end = matching(text, k.brace); k.end < 0 {
		return k, fmt.Errorf("unbalanced body")
	}
	list := lineMarker.ReplaceAllString(text[k.open+1:k.shut], "")
	for _, decl := range splitTop(list) {
		p, err := parseParam(decl)
		if err != nil {
			return k, err
		}
		k.Params = append(k.Params, p)
	}
	return k, checkParams(k.Params)
}

func parseParam(text string) (Param, error) {
	a := attribute.FindStringSubmatch(text)
	if a == nil {
		return Param{}, fmt.Errorf("parameter %q has no attribute", strings.Join(strings.Fields(text), " "))
	}
	decl := strings.TrimSpace(attribute.ReplaceAllString(text, ""))
	name := lastWord.FindString(decl)
	p := Param{Type: strings.TrimSpace(strings.TrimSuffix(decl, name)), Name: strings.TrimSpace(name)}
	if a[1] != "buffer" {
		types, ok := positions[a[1]]
		if !ok {
			return p, fmt.Errorf("parameter %s: attribute %s is not used here", p.Name, a[1])
		}
		for _, t := range types {
			if t == p.Type {
				p.Kind, p.Attr = Position, a[1]
				return p, nil
			}
		}
		return p, fmt.Errorf("parameter %s: %s as %s", p.Name, a[1], p.Type)
	}
	var err error
	if p.Index, err = strconv.Atoi(a[2]); err != nil || p.Index > 30 {
		return p, fmt.Errorf("parameter %s: buffer index %q, want 0 to 30", p.Name, a[2])
	}
	switch words := strings.Fields(p.Type); {
	case strings.HasPrefix(p.Type, "constant ") && strings.HasSuffix(p.Type, "Args&"):
		p.Kind, p.Type = Constant, strings.TrimSuffix(words[1], "&")
	case strings.HasPrefix(p.Type, "device const ") && strings.HasSuffix(p.Type, "*"):
		p.Kind = ReadBuffer
	case strings.HasPrefix(p.Type, "device ") && strings.HasSuffix(p.Type, "*"):
		p.Kind = WriteBuffer
	default:
		return p, fmt.Errorf("parameter %s: type %q, want device T*, device const T* or constant XArgs&", p.Name, p.Type)
	}
	return p, nil
}

// checkParams holds buffers to the indexes 0, 1, 2, … in order, the argument struct last.
func checkParams(params []Param) error {
	next, done := 0, false
	for _, p := range params {
		if p.Kind == Position {
			continue
		}
		if done {
			return fmt.Errorf("parameter %s: the argument struct must be the last buffer", p.Name)
		}
		if p.Index != next {
			return fmt.Errorf("parameter %s: buffer index %d, want %d", p.Name, p.Index, next)
		}
		next++
		done = p.Kind == Constant
	}
	if !done {
		return fmt.Errorf("no argument struct")
	}
	return nil
}

func parseStruct(name, body string) (Struct, error) {
	s := Struct{Name: name}
	for _, line := range strings.Split(lineMarker.ReplaceAllString(body, ""), ";") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		m := fieldDecl.FindStringSubmatch(line)
		if m == nil {
			return s, fmt.Errorf("field %q, want uint or float and one name", line)
		}
		s.Fields = append(s.Fields, Field{Type: m[1], Name: m[2]})
	}
	return s, nil
}

// matching is the offset of the bracket that closes the one at i, or -1.
func matching(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// splitTop splits at the commas that lie in no bracket.
func splitTop(s string) []string {
	var out []string
	depth, last := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[last:i])
				last = i + 1
			}
		}
	}
	return append(out, s[last:])
}
