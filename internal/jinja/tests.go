package jinja

import "fmt"

func typeTest(name string, is func(v Value) bool) *function {
	return &function{name: name, params: []param{need("value")}, body: func(_ *run, a []Value) (Value, error) {
		return boolean(is(a[0])), nil
	}}
}

// typeTests are the tests on what kind of thing a value is.
func typeTests() []*function {
	return []*function{
		typeTest("defined", func(v Value) bool { return !isUndefined(v) }),
		typeTest("undefined", isUndefined),
		typeTest("none", func(v Value) bool { return v == Value(none{}) }),
		typeTest("boolean", func(v Value) bool { _, ok := v.(boolean); return ok }),
		typeTest("true", func(v Value) bool { return v == Value(boolean(true)) }),
		typeTest("false", func(v Value) bool { return v == Value(boolean(false)) }),
		typeTest("integer", func(v Value) bool { return v.typeName() == "int" }),
		typeTest("float", func(v Value) bool { _, ok := v.(float); return ok }),
		typeTest("number", func(v Value) bool { _, ok := asNumber(v); return ok }),
		typeTest("string", func(v Value) bool { _, ok := text(v); return ok }),
		typeTest("escaped", func(v Value) bool { _, ok := v.(markup); return ok }),
		typeTest("mapping", func(v Value) bool { _, ok := v.(*Map); return ok }),
		typeTest("sequence", isSequence),
		typeTest("iterable", func(v Value) bool { _, err := iterate(v); return err == nil }),
		typeTest("callable", func(v Value) bool { _, ok := v.(callable); return ok || isUndefined(v) }),
	}
}

func isUndefined(v Value) bool { _, ok := v.(*undefined); return ok }

func isSequence(v Value) bool {
	switch v.(type) {
	case str, markup, *list, *tuple, *Map, *rangeValue, *undefined:
		return true
	}
	return false
}

// valueTests are the tests on what a value is worth.
func valueTests() []*function {
	value := []param{need("value")}
	tests := []*function{
		{name: "odd", params: value, body: remainderTest(integer(2), integer(1))},
		{name: "even", params: value, body: remainderTest(integer(2), integer(0))},
		{name: "divisibleby", params: []param{need("value"), need("num")}, body: divisibleBy},
		{name: "lower", params: value, body: textTest(isLower)},
		{name: "upper", params: value, body: textTest(isUpper)},
		{name: "filter", params: value, body: nameTest(func(r *run, name string) bool {
			return r.lib.filters[name] != nil || refusedFilters[name]
		})},
		{name: "test", params: value, body: nameTest(func(r *run, name string) bool { return r.lib.tests[name] != nil })},
		{name: "sameas", params: []param{need("value"), need("other")}, body: sameAs},
		{name: "in", params: []param{need("value"), need("seq")}, body: compareTest("in")},
	}
	for op, names := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
	} {
		for _, name := range names {
			tests = append(tests, &function{name: name, params: []param{need("a"), need("b")}, posOnly: 2, body: compareTest(op)})
		}
	}
	return tests
}

func compareTest(op string) body {
	return func(r *run, a []Value) (Value, error) {
		ok, err := compare(r, op, a[0], a[1])
		return boolean(ok), err
	}
}

func remainderTest(by, want Value) body {
	return func(r *run, a []Value) (Value, error) {
		rest, err := binary(r, "%", a[0], by)
		if err != nil {
			return nil, err
		}
		same, err := equal(r, rest, want)
		return boolean(same), err
	}
}

func divisibleBy(r *run, a []Value) (Value, error) {
	return remainderTest(a[1], integer(0))(r, a)
}

func textTest(is func(string) bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, err := r.str(a[0])
		return boolean(is(s)), err
	}
}

func nameTest(known func(r *run, name string) bool) body {
	return func(r *run, a []Value) (Value, error) {
		if _, err := hashKey(a[0]); err != nil {
			return nil, err
		}
		name, ok := text(a[0])
		return boolean(ok && known(r, name)), nil
	}
}

// sameAs is Python's is. For equal strings and numbers that depends on how Python came by them,
// so those are refused.
func sameAs(r *run, a []Value) (Value, error) {
	if isPointer(a[0]) || a[0].typeName() != a[1].typeName() {
		return boolean(isPointer(a[0]) && a[0] == a[1]), nil
	}
	switch v := a[0].(type) {
	case none, boolean:
		return boolean(a[0] == a[1]), nil
	case integer:
		if v >= -5 && v <= 256 { // Python has one object for each of these
			return boolean(a[0] == a[1]), nil
		}
	}
	same, err := equal(r, a[0], a[1])
	if err != nil || !same {
		return boolean(false), err
	}
	return nil, fmt.Errorf("sameas of two equal %s objects is not supported", a[0].typeName())
}
