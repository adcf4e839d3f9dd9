package msl

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"
)

// Bindings writes the Go side of the units' kernels as a file of package kernels: the
// argument structs, the kernel table and a launch constructor per argument struct.
func Bindings(units []*Unit) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated from the .metal files by metal/internal/msl/gen; DO NOT EDIT.\n\npackage kernels\n\n")
	b.WriteString("import (\n\"encoding/binary\"\n\"math\"\n)\n")
	for _, u := range units {
		if err := bindUnit(&b, u); err != nil {
			return nil, fmt.Errorf("%s.metal: %w", u.File, err)
		}
	}
	b.WriteString("\n// Kernels is every kernel, by file.\nvar Kernels = []*Kernel{\n")
	for _, u := range units {
		for _, k := range u.Kernels {
			fmt.Fprintf(&b, "&%s,\n", goName(k.Name, false))
		}
	}
	b.WriteString("}\n")
	out, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("generated code: %w\n%s", err, b.Bytes())
	}
	return out, nil
}

func bindUnit(b *bytes.Buffer, u *Unit) error {
	for _, s := range u.Structs {
		users := kernelsOf(u, s.Name)
		if len(users) == 0 {
			return fmt.Errorf("struct %s: no kernel takes it", s.Name)
		}
		for _, k := range users[1:] {
			if !sameBuffers(users[0], k) {
				return fmt.Errorf("kernels %s and %s share %s but not their buffers", users[0].Name, k.Name, s.Name)
			}
		}
		bindStruct(b, u.File, s)
		bindLaunch(b, s, users[0])
	}
	for _, k := range u.Kernels {
		bindKernel(b, u, k)
	}
	return nil
}

func kernelsOf(u *Unit, args string) []Kernel {
	var out []Kernel
	for _, k := range u.Kernels {
		if k.Args() == args {
			out = append(out, k)
		}
	}
	return out
}

func sameBuffers(a, b Kernel) bool {
	x, y := buffers(a), buffers(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Kind != y[i].Kind || x[i].Name != y[i].Name {
			return false
		}
	}
	return true
}

func buffers(k Kernel) []Param {
	var out []Param
	for _, p := range k.Params {
		if p.Kind == ReadBuffer || p.Kind == WriteBuffer {
			out = append(out, p)
		}
	}
	return out
}

func bindStruct(b *bytes.Buffer, file string, s Struct) {
	fmt.Fprintf(b, "\n// %s is the struct of that name in %s.metal.\ntype %s struct {\n", goName(s.Name, false), file, goName(s.Name, false))
	for _, f := range s.Fields {
		fmt.Fprintf(b, "%s %s\n", fieldName(f.Name), map[string]string{"uint": "uint32", "float": "float32"}[f.Type])
	}
	fmt.Fprintf(b, "}\n\nfunc (a %s) bytes() []byte {\nb := make([]byte, 0, %d)\n", goName(s.Name, false), 4*len(s.Fields))
	for _, f := range s.Fields {
		v := "a." + fieldName(f.Name)
		if f.Type == "float" {
			v = "math.Float32bits(" + v + ")"
		}
		fmt.Fprintf(b, "b = binary.LittleEndian.AppendUint32(b, %s)\n", v)
	}
	b.WriteString("return b\n}\n")
}

func bindLaunch(b *bytes.Buffer, s Struct, k Kernel) {
	var names []string
	for _, p := range buffers(k) {
		names = append(names, p.Name)
	}
	fmt.Fprintf(b, "\nfunc launch%s(k *Kernel, grid [3]uint32, %s Span, args %s) Launch {\n", exported(strings.TrimSuffix(s.Name, "Args")), strings.Join(names, ", "), goName(s.Name, false))
	fmt.Fprintf(b, "return Launch{Kernel: k, Grid: grid, Buffers: []Span{%s}, Args: args.bytes()}\n}\n", strings.Join(names, ", "))
}

func bindKernel(b *bytes.Buffer, u *Unit, k Kernel) {
	size := 0
	for _, s := range u.Structs {
		if s.Name == k.Args() {
			size = 4 * len(s.Fields)
		}
	}
	fmt.Fprintf(b, "\nvar %s = Kernel{Name: %q, File: %q, Threads: %d, ArgsSize: %d, Buffers: []Param{", goName(k.Name, false), k.Name, u.File, k.Threads, size)
	for _, p := range buffers(k) {
		fmt.Fprintf(b, "{Name: %q, Written: %v}, ", p.Name, p.Kind == WriteBuffer)
	}
	b.WriteString("}}\n")
}

// goName turns a_name or AName into aName, or AName when exported.
func goName(s string, export bool) string {
	var b strings.Builder
	for i, word := range strings.Split(s, "_") {
		if word == "" {
			continue
		}
		if i > 0 || export {
			b.WriteString(exported(word))
		} else {
			b.WriteString(strings.ToLower(word[:1]) + word[1:])
		}
	}
	if !export && b.Len() > 0 && strings.HasSuffix(s, "Args") {
		return b.String()
	}
	if export {
		return b.String()
	}
	return "k" + exported(b.String())
}

func fieldName(s string) string { return goName(s, true) }

func exported(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
