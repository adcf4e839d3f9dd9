package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// expression parses one expression; cond allows an inline if at its top.
func (p *parser) expression(cond bool) (expr, error) {
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if cond {
		return p.condition()
	}
	return p.or()
}

func (p *parser) condition() (expr, error) {
	line := p.cur().line
	e, err := p.or()
	for err == nil && p.skipName("if") {
		c := &condExpr{yes: e, line: line}
		if err = p.link(); err != nil {
			return nil, err
		}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if c.no, err = p.expression(true); err != nil {
				return nil, err
			}
		}
		e, line = c, p.cur().line
	}
	return e, err
}

// chained parses operand, then make(left, operand) for as long as more says that an operator
// was taken.
func (p *parser) chained(operand func() (expr, error), more func() bool, make func(left, right expr, line int) expr) (expr, error) {
	line := p.cur().line
	left, err := operand()
	for err == nil && more() {
		if err = p.link(); err != nil {
			return nil, err
		}
		var right expr
		if right, err = operand(); err != nil {
			return nil, err
		}
		left = make(left, right, line)
		line = p.cur().line
	}
	return left, err
}

func (p *parser) or() (expr, error) {
	return p.chained(p.and, func() bool { return p.skipName("or") },
		func(left, right expr, _ int) expr { return &logicExpr{true, left, right} })
}

func (p *parser) and() (expr, error) {
	return p.chained(p.not, func() bool { return p.skipName("and") },
		func(left, right expr, _ int) expr { return &logicExpr{false, left, right} })
}

func (p *parser) not() (expr, error) {
	if !p.skipName("not") {
		return p.compare()
	}
	if err := p.link(); err != nil {
		return nil, err
	}
	e, err := p.not()
	return &notExpr{e}, err
}

func (p *parser) compare() (expr, error) {
	line := p.cur().line
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	var ops []operand
	for {
		op := p.compareOp()
		if op == "" {
			break
		}
		right, err := p.sum()
		if err != nil {
			return nil, err
		}
		ops = append(ops, operand{op, right})
	}
	if ops == nil {
		return first, nil
	}
	return &compareExpr{first, ops, line}, nil
}

// compareOp takes a comparison operator, if there is one.
func (p *parser) compareOp() string {
	t := p.cur()
	switch {
	case t.kind == tokOp && strings.Contains(" == != < <= > >= ", " "+t.text+" "):
		p.next()
		return t.text
	case t.isName("in"):
		p.next()
		return "in"
	case t.isName("not") && p.peek().isName("in"):
		p.next()
		p.next()
		return "not in"
	}
	return ""
}

// arithmeticLevel parses a chain of any of ops over operand.
func (p *parser) arithmeticLevel(operand func() (expr, error), ops string) (expr, error) {
	var op string
	more := func() bool {
		t := p.cur()
		if t.kind != tokOp || !strings.Contains(ops, " "+t.text+" ") {
			return false
		}
		op = t.text
		p.next()
		return true
	}
	return p.chained(operand, more, func(left, right expr, line int) expr {
		return &binExpr{op, left, right, line}
	})
}

func (p *parser) sum() (expr, error)     { return p.arithmeticLevel(p.concat, " + - ") }
func (p *parser) product() (expr, error) { return p.arithmeticLevel(p.power, " * / // % ") }
func (p *parser) power() (expr, error) {
	return p.arithmeticLevel(func() (expr, error) { return p.unary(true) }, " ** ")
}

func (p *parser) concat() (expr, error) {
	line := p.cur().line
	first, err := p.product()
	if err != nil || !p.cur().isOp("~") {
		return first, err
	}
	nodes := []expr{first}
	for p.skipOp("~") {
		e, err := p.product()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, e)
	}
	return &concatExpr{nodes, line}, nil
}

func (p *parser) unary(withFilter bool) (e expr, err error) {
	t := p.cur()
	if t.isOp("-") || t.isOp("+") {
		p.next()
		if err = p.link(); err != nil {
			return nil, err
		}
		if e, err = p.unary(false); err != nil {
			return nil, err
		}
		e = &signExpr{t.text, e, t.line}
	} else if e, err = p.primary(false); err != nil {
		return nil, err
	}
	if e, err = p.postfix(e); err != nil || !withFilter {
		return e, err
	}
	return p.filterExpr(e)
}

var constants = map[string]Value{
	"true": boolean(true), "True": boolean(true), "false": boolean(false), "False": boolean(false),
	"none": none{}, "None": none{},
}

// primary parses a name or literal; namespace allows name.attr, as a target.
func (p *parser) primary(namespace bool) (expr, error) {
	t := p.cur()
	switch {
	case t.kind == tokName:
		p.next()
		if v := constants[t.text]; v != nil {
			return &constExpr{v}, nil
		}
		if namespace && p.skipOp(".") {
			attr, err := p.expectName()
			return &nsExpr{name: t.text, attr: attr.text, line: t.line}, err
		}
		return &nameExpr{name: t.text, line: t.line}, nil
	case t.kind == tokString:
		var s strings.Builder
		for p.cur().kind == tokString {
			s.WriteString(p.next().text)
		}
		return &constExpr{str(s.String())}, nil
	case t.kind == tokInt, t.kind == tokFloat:
		p.next()
		v, err := parseNumber(t)
		return &constExpr{v}, at(t.line, err)
	case t.isOp("("):
		p.next()
		e, err := p.tuple(tupleRules{cond: true, parens: true})
		if err != nil {
			return nil, err
		}
		return e, p.expectOp(")")
	case t.isOp("["):
		return p.list()
	case t.isOp("{"):
		return p.dict()
	}
	return nil, failAt(t.line, "unexpected '%s'", t.describe())
}

func parseNumber(t token) (Value, error) {
	digits := strings.ReplaceAll(t.text, "_", "")
	if t.kind == tokFloat {
		f, err := strconv.ParseFloat(digits, 64)
		if math.IsInf(f, 0) {
			err = nil // Python reads 1e999 as inf
		}
		return float(f), err
	}
	n, ok := new(big.Int).SetString(digits, 0)
	if !ok {
		return nil, fmt.Errorf("bad number '%s'", t.text)
	}
	return makeInt(n)
}

// tupleRules are the ways in which a place takes one expression or a tuple without brackets.
type tupleRules struct {
	simplified bool   // names and literals only
	cond       bool   // inline if allowed
	namespace  bool   // name.attr allowed
	parens     bool   // inside brackets, where () is a tuple
	end        string // a name that ends the tuple
}

func (p *parser) tuple(rules tupleRules) (expr, error) {
	var items []expr
	isTuple := false
	for {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.tupleEnd(rules.end) {
			break
		}
		e, err := p.tupleItem(rules)
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if !p.cur().isOp(",") {
			break
		}
		isTuple = true
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0], nil
		}
		if !rules.parens {
			t := p.cur()
			return nil, failAt(t.line, "Expected an expression, got '%s'", t.describe())
		}
	}
	return &tupleExpr{items}, nil
}

func (p *parser) tupleItem(rules tupleRules) (expr, error) {
	if rules.simplified {
		return p.primary(rules.namespace)
	}
	return p.expression(rules.cond)
}

func (p *parser) tupleEnd(name string) bool {
	t := p.cur()
	return t.kind == tokVarEnd || t.kind == tokBlockEnd || t.isOp(")") || name != "" && t.isName(name)
}

func (p *parser) list() (expr, error) {
	p.next()
	e := &listExpr{}
	for !p.cur().isOp("]") {
		if len(e.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().isOp("]") {
				break
			}
		}
		item, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		e.items = append(e.items, item)
	}
	return e, p.expectOp("]")
}

func (p *parser) dict() (expr, error) {
	p.next()
	e := &dictExpr{}
	for !p.cur().isOp("}") {
		if len(e.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.cur().isOp("}") {
				break
			}
		}
		key, err := p.expression(true)
		if err == nil {
			err = p.expectOp(":")
		}
		if err != nil {
			return nil, err
		}
		value, err := p.expression(true)
		if err != nil {
			return nil, err
		}
		e.keys, e.values = append(e.keys, key), append(e.values, value)
	}
	return e, p.expectOp("}")
}

// postfix parses what may follow a primary: .name, [item], (arguments).
func (p *parser) postfix(e expr) (expr, error) {
	for {
		t := p.cur()
		var err error
		switch {
		case t.isOp("."):
			e, err = p.dotted(e)
		case t.isOp("["):
			e, err = p.subscript(e)
		case t.isOp("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err == nil {
			err = p.link()
		}
		if err != nil {
			return nil, err
		}
	}
}

// filterExpr parses what may follow a unary: |filter, is test, (arguments).
func (p *parser) filterExpr(e expr) (expr, error) {
	for {
		t := p.cur()
		var err error
		switch {
		case t.isOp("|"):
			p.next()
			e, err = p.filter(e)
		case t.isName("is"):
			e, err = p.test(e)
		case t.isOp("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
		if err == nil {
			err = p.link()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) dotted(e expr) (expr, error) {
	line := p.next().line
	t := p.next()
	switch t.kind {
	case tokName:
		return &attrExpr{e, t.text, line}, nil
	case tokInt:
		v, err := parseNumber(t)
		return &itemExpr{e, &constExpr{v}, line}, err
	}
	return nil, failAt(t.line, "expected name or number")
}

func (p *parser) subscript(e expr) (expr, error) {
	line := p.next().line
	var args []expr
	for !p.cur().isOp("]") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.subscribed(e, line)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	p.next()
	if len(args) != 1 {
		for _, arg := range args {
			if _, ok := arg.(*sliceExpr); ok {
				return nil, failAt(line, "slices inside a tuple are not supported")
			}
		}
		return &itemExpr{e, &tupleExpr{args}, line}, nil
	}
	if s, ok := args[0].(*sliceExpr); ok && s.node == e {
		return s, nil
	}
	return &itemExpr{e, args[0], line}, nil
}

// subscribed parses an index, or a slice of e.
func (p *parser) subscribed(e expr, line int) (expr, error) {
	s := &sliceExpr{node: e, line: line}
	var err error
	if !p.cur().isOp(":") {
		first, err := p.expression(true)
		if err != nil || !p.cur().isOp(":") {
			return first, err
		}
		s.start = first
	}
	p.next()
	if s.stop, err = p.sliceBound(); err == nil && p.skipOp(":") {
		s.step, err = p.sliceBound()
	}
	return s, err
}

func (p *parser) sliceBound() (expr, error) {
	if t := p.cur(); t.isOp(":") || t.isOp("]") || t.isOp(",") {
		return nil, nil
	}
	return p.expression(true)
}

func (p *parser) call(e expr) (expr, error) {
	line := p.cur().line
	args, err := p.arguments()
	return &callExpr{e, args, line}, err
}

func (p *parser) arguments() (a arguments, err error) {
	line := p.next().line
	for comma := false; !p.cur().isOp(")"); comma = true {
		if comma {
			if err = p.expectOp(","); err != nil {
				return a, err
			}
			if p.cur().isOp(")") {
				break
			}
		}
		if err = p.argument(&a, line); err != nil {
			return a, err
		}
	}
	p.next()
	return a, nil
}

func (p *parser) argument(a *arguments, line int) (err error) {
	bad := failAt(line, "invalid syntax for function call expression")
	switch {
	case p.skipOp("*"):
		if a.dynArgs != nil || a.dynKwargs != nil {
			return bad
		}
		a.dynArgs, err = p.expression(true)
	case p.skipOp("**"):
		if a.dynKwargs != nil {
			return bad
		}
		a.dynKwargs, err = p.expression(true)
	case p.cur().kind == tokName && p.peek().isOp("="):
		name := p.next().text
		p.next()
		if a.dynKwargs != nil {
			return bad
		}
		if contains1(a.names, name) {
			return failAt(line, "keyword argument repeated: %s", name)
		}
		var e expr
		e, err = p.expression(true)
		a.names, a.kwargs = append(a.names, name), append(a.kwargs, e)
	default:
		if a.dynArgs != nil || a.dynKwargs != nil || a.kwargs != nil {
			return bad
		}
		var e expr
		e, err = p.expression(true)
		a.args = append(a.args, e)
	}
	return err
}

// filters parses |filter|filter behind a block tag; it returns first, or nil, when there is none.
func (p *parser) filters(first *filterExpr) (*filterExpr, error) {
	for p.skipOp("|") {
		var node expr
		if first != nil {
			node = first
		}
		f, err := p.filter(node)
		if err == nil {
			err = p.link()
		}
		if err != nil {
			return nil, err
		}
		first = f
	}
	return first, nil
}

// filter parses a filter's name and arguments.
func (p *parser) filter(e expr) (*filterExpr, error) {
	t, name, err := p.dottedName()
	if err != nil {
		return nil, err
	}
	f := &filterExpr{node: e, name: name, line: t.line}
	if p.cur().isOp("(") {
		f.args, err = p.arguments()
	}
	return f, err
}

func (p *parser) dottedName() (token, string, error) {
	t, err := p.expectName()
	name := t.text
	for err == nil && p.skipOp(".") {
		var part token
		part, err = p.expectName()
		name += "." + part.text
	}
	return t, name, err
}

// test parses is [not] name, with arguments in brackets or one bare argument.
func (p *parser) test(e expr) (expr, error) {
	line := p.next().line
	negated := p.skipName("not")
	_, name, err := p.dottedName()
	if err != nil {
		return nil, err
	}
	t := &testExpr{node: e, name: name, line: line}
	switch cur := p.cur(); {
	case cur.isOp("("):
		t.args, err = p.arguments()
	case cur.isName("is"):
		return nil, failAt(cur.line, "You cannot chain multiple tests with is")
	case p.startsArgument():
		var arg expr
		if arg, err = p.primary(false); err == nil {
			arg, err = p.postfix(arg)
		}
		t.args.args = []expr{arg}
	}
	if err != nil {
		return nil, err
	}
	if negated {
		return &notExpr{t}, nil
	}
	return t, nil
}

func (p *parser) startsArgument() bool {
	t := p.cur()
	switch t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInt, tokFloat:
		return true
	}
	return t.isOp("[") || t.isOp("{")
}
