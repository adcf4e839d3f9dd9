package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

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
		return &constExpr{v}, onLine(t.line, err)
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
			return nil, failAt(t.line, "expected an expression, got '%s'", t.describe())
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
