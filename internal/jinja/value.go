package jinja

import (
	"fmt"
	"math/big"
)

// Value is a Python value that a template can see. Its kinds are those of this package alone.
type Value interface {
	// typeName is the name of its Python type, as error messages have it.
	typeName() string
}

type (
	none    struct{}
	boolean bool
	integer int64
	// bigInt is an int that int64 cannot hold.
	bigInt struct{ n *big.Int }
	float  float64
	str    string
	// markup is markupsafe.Markup: a str that the escape and safe filters make.
	markup string
	list   struct{ items []Value }
	// tuple may have named fields, as the groups of groupby do.
	tuple struct {
		items  []Value
		fields []string
	}
)

func (none) typeName() string    { return "NoneType" }
func (boolean) typeName() string { return "bool" }
func (integer) typeName() string { return "int" }
func (*bigInt) typeName() string { return "int" }
func (float) typeName() string   { return "float" }
func (str) typeName() string     { return "str" }
func (markup) typeName() string  { return "Markup" }
func (*list) typeName() string   { return "list" }
func (*tuple) typeName() string  { return "tuple" }

// None, Bool, Int, Float, String and List make values for Render.
func None() Value               { return none{} }
func Bool(b bool) Value         { return boolean(b) }
func Int(i int64) Value         { return integer(i) }
func Float(f float64) Value     { return float(f) }
func String(s string) Value     { return str(s) }
func List(v ...Value) Value     { return &list{v} }
func newTuple(v ...Value) Value { return &tuple{items: v} }

// text returns the string in a str or Markup.
func text(v Value) (string, bool) {
	switch s := v.(type) {
	case str:
		return string(s), true
	case markup:
		return string(s), true
	}
	return "", false
}

// like makes s a str, or a Markup when v is one.
func like(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return str(s)
}

// undefined is jinja2's Undefined: it prints empty, is false, iterates as empty, and fails with
// its message in nearly everything else.
type undefined struct {
	hint string // the whole message, or
	name Value  // what was looked up,
	obj  Value  // and where; nil for a variable
}

func (*undefined) typeName() string { return "Undefined" }

func undefinedName(name string) *undefined { return &undefined{name: str(name)} }

func (u *undefined) err() error {
	switch name, isName := text(u.name); {
	case u.hint != "":
		return fmt.Errorf("%s", u.hint)
	case u.obj == nil:
		return fmt.Errorf("%s is undefined", shortRepr(u.name))
	case isName:
		return fmt.Errorf("%q has no attribute %q", objectName(u.obj), name)
	}
	return fmt.Errorf("%s has no element %s", objectName(u.obj), shortRepr(u.name))
}

// objectName is jinja2's object_type_repr.
func objectName(v Value) string {
	if _, ok := v.(none); ok {
		return "None"
	}
	return v.typeName() + " object"
}

// namespace is what namespace() makes: the one thing that set can change.
type namespace struct{ attrs *Map }

func (*namespace) typeName() string { return "TemplateNamespace" }

// truth is Python's bool().
func truth(v Value) bool {
	switch v := v.(type) {
	case none, *undefined:
		return false
	case boolean:
		return bool(v)
	case integer:
		return v != 0
	case float:
		return v != 0
	case str:
		return v != ""
	case markup:
		return v != ""
	}
	if n, ok := length(v); ok {
		return n > 0
	}
	return true
}

// length is Python's len(), for what has one and knows it without running anything.
func length(v Value) (int, bool) {
	switch v := v.(type) {
	case str:
		return runeCount(string(v)), true
	case markup:
		return runeCount(string(v)), true
	case *list:
		return len(v.items), true
	case *tuple:
		return len(v.items), true
	case *Map:
		return v.Len(), true
	case *view:
		return v.m.Len(), true
	case *rangeValue:
		return v.n, true
	case *undefined:
		return 0, true
	}
	return 0, false
}
