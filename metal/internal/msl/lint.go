package msl

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A line of clang's -ast-dump: tree drawing, node kind, address, the rest.
var (
	astNode   = regexp.MustCompile(`^([|\x60 -]*)(\w+) (0x[0-9a-f]+)(.*)$`)
	astRange  = regexp.MustCompile(`<([^>]*)>`)
	astType   = regexp.MustCompile(`'([^']*)'`)
	astCallee = regexp.MustCompile(`(?:Function|CXXMethod) (0x[0-9a-f]+) '(\w+)'`)
)

// linter walks a syntax tree in print order.
type linter struct {
	found []string

	file, line string
	kinds      map[int]string // node kind by depth on the current path
	implicit   int            // depth of a compiler-made declaration we are in, or -1
	receiver   int            // depth of a cast of a method's object just seen, or -1

	functions []scope // the functions we are in
	calls     map[string]map[string]bool
	names     map[string]string
}

type scope struct {
	depth int
	addr  string
}

// lintTree reports what clang accepts in C++ for OpenCL and Metal refuses: pointers and
// references without an address space, methods called on objects outside thread memory,
// goto, lambdas and recursion.
func lintTree(tree io.Reader) []string {
	l := &linter{kinds: map[int]string{}, implicit: -1, receiver: -1, calls: map[string]map[string]bool{}, names: map[string]string{}}
	sc := bufio.NewScanner(tree)
	sc.Buffer(nil, 1<<24) // dumps have long lines
	for sc.Scan() {
		if m := astNode.FindStringSubmatch(sc.Text()); m != nil {
			l.node(len(m[1]), m[2], m[3], m[4])
		}
	}
	if err := sc.Err(); err != nil {
		l.found = append(l.found, err.Error())
	}
	l.recursion()
	return l.found
}

func (l *linter) report(format string, args ...any) {
	l.found = append(l.found, fmt.Sprintf("%s:%s: %s", l.file, l.line, fmt.Sprintf(format, args...)))
}

func (l *linter) node(depth int, kind, addr, rest string) {
	l.locate(rest)
	l.kinds[depth] = kind
	for n := len(l.functions); n > 0 && depth <= l.functions[n-1].depth; n-- {
		l.functions = l.functions[:n-1]
	}
	if l.implicit >= depth {
		l.implicit = -1
	}
	if l.implicit < 0 && strings.Contains(kind, "Decl") && strings.Contains(rest, " implicit") {
		l.implicit = depth
	}
	l.noteCalls(depth, kind, addr, rest)
	receiver := l.receiver
	l.receiver = -1
	if l.implicit < 0 && (strings.HasSuffix(l.file, ".metal") || strings.HasSuffix(l.file, ".h")) {
		l.judge(depth, kind, rest, receiver)
	}
}

// locate follows file and line: the dump names them only when they change.
func (l *linter) locate(rest string) {
	m := astRange.FindStringSubmatchIndex(rest)
	if m == nil {
		return
	}
	for _, part := range strings.Split(rest[m[2]:m[3]], ", ") {
		switch f := strings.Split(part, ":"); {
		case f[0] == "line" && len(f) > 1:
			l.line = f[1]
		case f[0] != "col" && len(f) == 3:
			l.file, l.line = f[0], f[1]
		}
	}
	if tail := strings.Fields(rest[m[1]:]); len(tail) > 0 && strings.HasPrefix(tail[0], "line:") {
		l.line = strings.Split(tail[0], ":")[1]
	}
}

func (l *linter) noteCalls(depth int, kind, addr, rest string) {
	if kind == "FunctionDecl" || kind == "CXXMethodDecl" {
		l.functions = append(l.functions, scope{depth, addr})
		if words := strings.Fields(strings.SplitN(rest, "'", 2)[0]); len(words) > 0 {
			l.names[addr] = words[len(words)-1]
		}
	}
	ref := astCallee.FindStringSubmatch(rest)
	if ref == nil {
		return
	}
	l.names[ref[1]] = ref[2]
	for _, f := range l.functions {
		if l.calls[f.addr] == nil {
			l.calls[f.addr] = map[string]bool{}
		}
		l.calls[f.addr][ref[1]] = true
	}
}

func (l *linter) judge(depth int, kind, rest string, receiver int) {
	typ := ""
	if m := astType.FindStringSubmatch(rest); m != nil {
		typ = m[1]
	}
	if receiver >= 0 && receiver == depth-2 {
		for _, space := range []string{"global", "local", "constant"} {
			if strings.Contains(typ, "__"+space) {
				l.report("a method called on a %s object: Metal wants thread", space)
			}
		}
	}
	switch kind {
	case "VarDecl", "ParmVarDecl", "FieldDecl", "CStyleCastExpr", "CXXStaticCastExpr", "CXXReinterpretCastExpr":
		if strings.Contains(typ, "__generic") && !strings.Contains(rest, " implicit ") {
			l.report("pointer or reference without an address space: %s", strings.ReplaceAll(typ, "__generic ", ""))
		}
	case "ImplicitCastExpr":
		if strings.Contains(rest, "<AddressSpaceConversion>") && l.kinds[depth-2] == "MemberExpr" {
			l.receiver = depth
		}
	case "GotoStmt", "LabelStmt", "IndirectGotoStmt":
		l.report("goto")
	case "LambdaExpr":
		l.report("lambda expression")
	}
}

func (l *linter) recursion() {
	const (
		open = 1
		done = 2
	)
	state := map[string]int{}
	var circular func(string) bool
	circular = func(f string) bool {
		state[f] = open
		for callee := range l.calls[f] {
			if state[callee] == open || state[callee] == 0 && circular(callee) {
				return true
			}
		}
		state[f] = done
		return false
	}
	for f := range l.calls {
		if state[f] == 0 && circular(f) {
			l.found = append(l.found, "recursion through "+l.names[f])
			return
		}
	}
}
