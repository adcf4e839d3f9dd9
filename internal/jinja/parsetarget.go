package jinja

import "fmt"

// name parses a name that will be assigned to.
func (p *parser) name() (*nameExpr, error) {
	t, err := p.expectName()
	if err != nil {
		return nil, err
	}
	if constants[t.text] != nil {
		return nil, failAt(t.line, "can't assign to '%s'", t.text)
	}
	return &nameExpr{name: t.text, use: store, line: t.line}, nil
}

// target parses what for, set and with assign to: names, namespace attributes, tuples of them.
func (p *parser) target(rules tupleRules) (expr, error) {
	line := p.cur().line
	rules.simplified = true
	e, err := p.tuple(rules)
	if err != nil {
		return nil, err
	}
	if err := setUse(e, store); err != nil {
		return nil, onLine(line, err)
	}
	return e, nil
}

// cloneTarget copies the target of a for, which is names and tuples of names.
func cloneTarget(e expr) expr {
	switch e := e.(type) {
	case *nameExpr:
		c := *e
		return &c
	case *tupleExpr:
		c := &tupleExpr{}
		for _, item := range e.items {
			c.items = append(c.items, cloneTarget(item))
		}
		return c
	}
	return e
}

func setUse(e expr, use nameUse) error {
	switch e := e.(type) {
	case *nameExpr:
		e.use = use
		return nil
	case *nsExpr:
		return nil
	case *tupleExpr:
		for _, item := range e.items {
			if err := setUse(item, use); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("can't assign to this expression")
}
