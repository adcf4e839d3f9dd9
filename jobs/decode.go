package jobs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder walks the syntax tree of a job file. It never stops at the first error.
type decoder struct {
	file   string
	dir    string
	source []byte
	errs   Errors
	places map[string]*token.Position // of every value that a table set, by path
}

// value is a node with its path, and the place of its key where it has one.
type value struct {
	node  ast.Node
	path  string
	keyAt *token.Position
}

// at is where the value begins. The parser puts a block mapping at its first colon.
func (v value) at() *token.Position {
	switch n := v.node.(type) {
	case *ast.MappingValueNode:
		return n.Key.GetToken().Position
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken().Position
		}
	}
	return v.node.GetToken().Position
}

func (d *decoder) bad(v value, format string, args ...any) { d.fail(v.at(), v.path, format, args...) }

// fields is what a mapping may hold: a setter per key. The setter of a key that the format
// foresees and this version does not do is later.
type fields map[string]func(value)

// later refuses a key by name.
func (d *decoder) later(v value) { d.fail(v.keyAt, v.path, "not supported yet") }

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	value value
}

// entries lists a mapping in the order of the file.
func (d *decoder) entries(v value) ([]entry, bool) {
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		d.bad(v, "is %s, want a mapping of keys to values", kind(v.node))
		return nil, false
	}
	var list []entry
	for _, p := range pairs {
		key := p.Key.GetToken()
		if p.Key.IsMergeKey() {
			d.fail(key.Position, v.path, "merge keys are not supported; use defaults")
			continue
		}
		path := strings.TrimPrefix(v.path+"."+key.Value, ".")
		list = append(list, entry{key.Value, value{p.Value, path, key.Position}})
	}
	return list, true
}

// mapping hands each value to the setter of its key.
func (d *decoder) mapping(v value, known fields) {
	list, _ := d.entries(v)
	for _, e := range list {
		set, ok := known[e.key]
		if !ok {
			d.fail(e.value.keyAt, e.value.path, "unknown key; known are %s", strings.Join(known.names(), ", "))
			continue
		}
		d.places[e.value.path] = e.value.at()
		set(e.value)
	}
}

// names lists the keys.
func (f fields) names() []string {
	var names []string
	for key := range f {
		names = append(names, key)
	}
	slices.Sort(names)
	return names
}

// list hands each element to each.
func (d *decoder) list(v value, each func(value)) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.bad(v, "is %s, want a list", kind(v.node))
		return
	}
	for i, element := range n.Values {
		each(v.element(i, element))
	}
}

// element is the i-th of the list v.
func (v value) element(i int, n ast.Node) value {
	return value{node: n, path: v.path + "[" + strconv.Itoa(i) + "]"}
}

// kind names a node for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias, which are not supported; use defaults"
	case *ast.TagNode:
		return "tagged, which is not supported"
	}
	return "no plain value"
}
