package jinja

import (
	"slices"
	"strings"
)

// parser turns tokens into statements. It follows jinja2's parser rule by rule, so that both
// take and refuse the same texts.
type parser struct {
	tokens []token
	at     int
	depth  int // blocks and expressions around the current token
	chain  int // operators since the tag began, all of which may nest
	// inLoop tells whether break and continue have a loop in the same function.
	inLoop bool
}

func parse(tokens []token) ([]stmt, error) {
	p := &parser{tokens: tokens}
	body, err := p.statements()
	if err == nil && p.cur().kind != tokEOF {
		err = unknownTag(p.cur())
	}
	return body, err
}

func (p *parser) cur() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) peek() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (t token) isOp(op string) bool     { return t.kind == tokOp && t.text == op }
func (t token) isName(name string) bool { return t.kind == tokName && t.text == name }

func (p *parser) skipOp(op string) bool {
	if p.cur().isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.cur().isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(ok bool, what string) error {
	t := p.cur()
	if !ok {
		return failAt(t.line, "expected token '%s', got '%s'", what, t.describe())
	}
	p.next()
	return nil
}

func (p *parser) expectOp(op string) error { return p.expect(p.cur().isOp(op), op) }

func (p *parser) expectName() (token, error) {
	t := p.cur()
	return t, p.expect(t.kind == tokName, "name")
}

func (p *parser) expectBlockEnd() error {
	return p.expect(p.cur().kind == tokBlockEnd, "end of statement block")
}

// deeper guards the recursion of the parser, and through it that of the tree.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxNesting {
		return failAt(p.cur().line, "template nests over the limit of %d", maxNesting)
	}
	return nil
}

// link guards the length of a chain such as a+b+c or a.b.c, which is as deep as it is long.
func (p *parser) link() error {
	if p.chain++; p.chain > maxChain {
		return failAt(p.cur().line, "one tag has over the limit of %d operators", maxChain)
	}
	return nil
}

// statements parses up to the end or to a tag in until, whose name is then the current token
// (subparse).
func (p *parser) statements(until ...string) ([]stmt, error) {
	var body []stmt
	for {
		t := p.cur()
		p.chain = 0
		switch t.kind {
		case tokEOF:
			return body, nil
		case tokData:
			p.next()
			body = append(body, &dataStmt{t.text})
		case tokVarBegin:
			p.next()
			e, err := p.tuple(tupleRules{cond: true})
			if err == nil {
				err = p.expect(p.cur().kind == tokVarEnd, "end of print statement")
			}
			if err != nil {
				return nil, err
			}
			body = append(body, &outputStmt{e, t.line})
		default:
			p.next()
			if p.cur().kind == tokName && slices.Contains(until, p.cur().text) {
				return body, nil
			}
			s, err := p.statement()
			if err == nil {
				err = p.expectBlockEnd()
			}
			if err != nil {
				return nil, err
			}
			body = append(body, s...)
		}
	}
}

// refusedTags are tags that jinja2 knows here and this package does not.
var refusedTags = nameSet("block extends include from import autoescape")

func (p *parser) statement() ([]stmt, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.cur()
	if t.kind != tokName {
		return nil, failAt(t.line, "tag name expected")
	}
	if refusedTags[t.text] {
		return nil, failAt(t.line, "tag '%s' is not supported", t.text)
	}
	p.next()
	if t.text == "print" {
		return p.printTag()
	}
	s, err := p.tag(t)
	return []stmt{s}, err
}

func (p *parser) tag(t token) (stmt, error) {
	switch t.text {
	case "for":
		return p.forTag(t)
	case "if":
		return p.ifTag(t)
	case "set":
		return p.setTag(t)
	case "with":
		return p.withTag(t)
	case "macro":
		return p.macroTag(t)
	case "call":
		return p.callTag(t)
	case "filter":
		return p.filterTag(t)
	case "generation":
		return p.generationTag(t)
	case "break", "continue":
		return p.jumpTag(t)
	}
	return nil, unknownTag(t)
}

func unknownTag(t token) error {
	return failAt(t.line, "unknown or misplaced tag '%s'", t.describe())
}

// block parses the rest of a tag and what follows up to one of the end tags, whose name it
// returns with that name taken (parse_statements).
func (p *parser) block(until ...string) (body []stmt, end string, err error) {
	p.skipOp(":")
	if err := p.expectBlockEnd(); err != nil {
		return nil, "", err
	}
	if body, err = p.statements(until...); err != nil {
		return nil, "", err
	}
	if t := p.cur(); t.kind == tokEOF {
		return nil, "", failAt(t.line, "unexpected end of template, looking for '%s'", strings.Join(until, "' or '"))
	}
	return body, p.next().text, nil
}

// function parses a block that runs as a function of its own: no loop reaches into it.
func (p *parser) function(until string) ([]stmt, error) {
	outer := p.inLoop
	p.inLoop = false
	body, _, err := p.block(until)
	p.inLoop = outer
	return body, err
}

func (p *parser) setTag(t token) (stmt, error) {
	target, err := p.target(tupleRules{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		e, err := p.tuple(tupleRules{cond: true})
		return &setStmt{target, e, t.line}, err
	}
	s := &setBlockStmt{target: target, line: t.line}
	if s.filter, err = p.filters(nil); err != nil {
		return nil, err
	}
	s.body, _, err = p.block("endset")
	return s, err
}

func (p *parser) forTag(t token) (s_ stmt, err error) {
	s := &forStmt{line: t.line}
	if s.target, err = p.target(tupleRules{end: "in"}); err != nil {
		return nil, err
	}
	if err = p.expect(p.cur().isName("in"), "in"); err != nil {
		return nil, err
	}
	if s.iter, err = p.tuple(tupleRules{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		s.filter = &forTest{target: cloneTarget(s.target)}
		if s.filter.test, err = p.expression(true); err != nil {
			return nil, err
		}
	}
	if p.cur().isName("recursive") {
		return nil, failAt(t.line, "recursive loops are not supported")
	}
	outer := p.inLoop
	p.inLoop = true
	body, end, err := p.block("endfor", "else")
	p.inLoop = outer
	s.body = body
	if err == nil && end == "else" {
		s.other, _, err = p.block("endfor")
	}
	return s, err
}

func (p *parser) ifTag(t token) (s_ stmt, err error) {
	first := &ifStmt{line: t.line}
	for s := first; ; {
		if s.test, err = p.tuple(tupleRules{}); err != nil {
			return nil, err
		}
		var end string
		if s.body, end, err = p.block("elif", "else", "endif"); err != nil {
			return nil, err
		}
		switch end {
		case "elif":
			s = &ifStmt{line: p.cur().line}
			first.elifs = append(first.elifs, s)
			continue
		case "else":
			first.other, _, err = p.block("endif")
		}
		return first, err
	}
}

func (p *parser) withTag(t token) (stmt, error) {
	s := &withStmt{line: t.line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(tupleRules{})
		if err != nil {
			return nil, err
		}
		setUse(target, parameter)
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		s.targets, s.values = append(s.targets, target), append(s.values, value)
	}
	var err error
	s.body, _, err = p.block("endwith")
	return s, err
}

func (p *parser) macroTag(t token) (stmt, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	def := &macroDef{name: name.name, line: t.line}
	if err := p.signature(def); err != nil {
		return nil, err
	}
	def.body, err = p.function("endmacro")
	return &macroStmt{name: name.name, def: def, line: t.line}, err
}

func (p *parser) callTag(t token) (stmt, error) {
	def := &macroDef{line: t.line}
	if p.cur().isOp("(") {
		if err := p.signature(def); err != nil {
			return nil, err
		}
	}
	e, err := p.expression(true)
	if err != nil {
		return nil, err
	}
	callee, ok := e.(*callExpr)
	if !ok {
		return nil, failAt(t.line, "expected call")
	}
	def.body, err = p.function("endcall")
	return &callStmt{call: callee, def: def, line: t.line}, err
}

func (p *parser) generationTag(t token) (stmt, error) {
	def := &macroDef{line: t.line}
	var err error
	def.body, err = p.function("endgeneration")
	return &callStmt{def: def, line: t.line}, err
}

// signature parses the parameters of a macro or call block.
func (p *parser) signature(def *macroDef) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().isOp(")") {
		if len(def.args) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		arg, err := p.name()
		if err != nil {
			return err
		}
		arg.use = parameter
		for _, other := range def.args {
			if other.name == arg.name {
				return failAt(arg.line, "duplicate argument '%s' in macro definition", arg.name)
			}
		}
		if p.skipOp("=") {
			e, err := p.expression(true)
			if err != nil {
				return err
			}
			def.defaults = append(def.defaults, e)
		} else if len(def.defaults) > 0 {
			return failAt(arg.line, "non-default argument follows default argument")
		}
		def.args = append(def.args, arg)
	}
	return p.expectOp(")")
}

func (p *parser) filterTag(t token) (s_ stmt, err error) {
	s := &filterStmt{line: t.line}
	if s.filter, err = p.filter(nil); err != nil {
		return nil, err
	}
	if s.filter, err = p.filters(s.filter); err != nil {
		return nil, err
	}
	s.body, _, err = p.block("endfilter")
	return s, err
}

func (p *parser) jumpTag(t token) (stmt, error) {
	if !p.inLoop {
		return nil, failAt(t.line, "'%s' outside loop", t.text)
	}
	s := &jumpStmt{breakLoop, t.line}
	if t.text == "continue" {
		s.flow = continueLoop
	}
	return s, nil
}

func (p *parser) printTag() ([]stmt, error) {
	var out []stmt
	for p.cur().kind != tokBlockEnd {
		if len(out) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		line := p.cur().line
		e, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		out = append(out, &outputStmt{e, line})
	}
	return out, nil
}
