package jinja

import (
	"errors"
	"fmt"
)

// execAll runs statements until one leaves the loop around them.
func execAll(r *run, f *frame, out *buffer, body []stmt) (flow, error) {
	for _, s := range body {
		if flow, err := s.exec(r, f, out); flow != goOn || err != nil {
			return flow, err
		}
	}
	return goOn, nil
}

// capture runs statements and gives what they print; ok is false when they left the loop around.
func capture(r *run, f *frame, body []stmt) (made str, flow flow, err error) {
	out := &buffer{}
	flow, err = execAll(r, f, out, body)
	return str(out.String()), flow, err
}

func (s *dataStmt) exec(r *run, _ *frame, out *buffer) (flow, error) {
	return goOn, out.write(r, s.text)
}

func (s *outputStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	v, err := s.node.eval(r, f)
	if err == nil {
		err = printValue(r, out, v)
	}
	return goOn, onLine(s.line, err)
}

func printValue(r *run, out *buffer, v Value) error {
	s, err := r.str(v)
	if err != nil {
		return err
	}
	return out.write(r, s)
}

// printText prints what jinja2 joins as it is, and so must be a string.
func printText(r *run, out *buffer, v Value) error {
	s, ok := text(v)
	if !ok {
		return fmt.Errorf("expected str instance, %s found", v.typeName())
	}
	return out.write(r, s)
}

func (s *ifStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	branch, ok, err := s.branch(r, f)
	for _, elif := range s.elifs {
		if ok || err != nil {
			break
		}
		branch, ok, err = elif.branch(r, f)
	}
	if err != nil {
		return goOn, err
	}
	if !ok {
		branch = s.other
	}
	return execAll(r, f, out, branch)
}

func (s *ifStmt) branch(r *run, f *frame) (body []stmt, ok bool, err error) {
	v, err := s.test.eval(r, f)
	if err != nil {
		return nil, false, onLine(s.line, err)
	}
	return s.body, truth(v), r.step(1)
}

func (s *setStmt) exec(r *run, f *frame, _ *buffer) (flow, error) {
	if err := checkNamespaces(f, s.target); err != nil {
		return goOn, onLine(s.line, err)
	}
	v, err := s.node.eval(r, f)
	if err == nil {
		err = assign(r, f, s.target, v)
	}
	return goOn, onLine(s.line, err)
}

// checkNamespaces looks at the targets before the value is computed, as jinja2 does.
func checkNamespaces(f *frame, target expr) error {
	switch target := target.(type) {
	case *nsExpr:
		if _, ok := f.get(target.ref).(*namespace); !ok {
			return errors.New("cannot assign attribute on non-namespace object")
		}
	case *tupleExpr:
		for _, item := range target.items {
			if err := checkNamespaces(f, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func assign(r *run, f *frame, target expr, v Value) error {
	if err := r.step(1); err != nil {
		return err
	}
	switch target := target.(type) {
	case *nameExpr:
		f.set(target.ref, v)
		return nil
	case *nsExpr:
		ns, ok := f.get(target.ref).(*namespace)
		if !ok {
			return errors.New("cannot assign attribute on non-namespace object")
		}
		if err := r.items(4); err != nil {
			return err
		}
		return ns.set(target.attr, v)
	}
	return unpack(r, f, target.(*tupleExpr).items, v)
}

func unpack(r *run, f *frame, targets []expr, v Value) error {
	it, err := iterate(v)
	if err != nil {
		return fmt.Errorf("cannot unpack non-iterable %s object", v.typeName())
	}
	var items []Value
	for {
		item, ok, err := it.next(r)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if len(items) == len(targets) {
			return fmt.Errorf("too many values to unpack (expected %d)", len(targets))
		}
		items = append(items, item)
	}
	if len(items) < len(targets) {
		return fmt.Errorf("not enough values to unpack (expected %d, got %d)", len(targets), len(items))
	}
	for i, target := range targets {
		if err := assign(r, f, target, items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *setBlockStmt) exec(r *run, f *frame, _ *buffer) (flow, error) {
	if err := r.enterScope(f, s.enter); err != nil {
		return goOn, err
	}
	made, flow, err := capture(r, f, s.body)
	if flow != goOn || err != nil {
		return flow, err
	}
	v := Value(made)
	if s.filter != nil {
		if v, err = s.filter.filterBlock(r, f, made); err != nil {
			return goOn, err
		}
	}
	err = assign(r, f, s.target, v)
	leaveScope(f, s.enter)
	return goOn, onLine(s.line, err)
}

func (s *filterStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	if err := r.enterScope(f, s.enter); err != nil {
		return goOn, err
	}
	made, flow, err := capture(r, f, s.body)
	if flow != goOn || err != nil {
		return flow, err
	}
	v, err := s.filter.filterBlock(r, f, made)
	if err == nil {
		err = printText(r, out, v)
	}
	leaveScope(f, s.enter)
	return goOn, onLine(s.line, err)
}

func (s *withStmt) exec(r *run, f *frame, out *buffer) (flow, error) {
	if err := r.enterScope(f, s.enter); err != nil {
		return goOn, err
	}
	for i, target := range s.targets {
		v, err := s.values[i].eval(r, f)
		if err == nil {
			err = assign(r, f, target, v)
		}
		if err != nil {
			return goOn, onLine(s.line, err)
		}
	}
	flow, err := execAll(r, f, out, s.body)
	leaveScope(f, s.enter)
	return flow, err
}

func (s *jumpStmt) exec(r *run, _ *frame, _ *buffer) (flow, error) { return s.flow, r.step(1) }
