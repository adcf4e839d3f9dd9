package jinja

import "slices"

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
		if slices.Contains(a.names, name) {
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
		return nil, failAt(cur.line, "you cannot chain multiple tests with is")
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
