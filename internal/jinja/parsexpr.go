package jinja

import "strings"

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
