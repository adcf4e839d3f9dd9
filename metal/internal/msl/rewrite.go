package msl

import (
	"fmt"
	"regexp"
	"strings"
)

// Target is what a unit is compiled for.
type Target uint8

// CPU is the checking runtime, NVPTX an NVIDIA GPU.
const (
	CPU Target = iota
	NVPTX
)

// threadgroupVar is a threadgroup variable of a kernel body: no * or & before the name.
var threadgroupVar = regexp.MustCompile(`([{};]\s*)threadgroup\s+(\w+)\s+(\w+)\s*((?:\[[^\];]*\]\s*)*);`)

// Rewrite gives the translation unit for clang. Line markers stay, so its messages carry
// the lines of the .metal file.
func (u *Unit) Rewrite(t Target) string {
	var b strings.Builder
	b.WriteString("#include <metal_stdlib>\n")
	last, vars := 0, 0
	for _, k := range u.Kernels {
		b.WriteString(u.text[last:k.start])
		pass, locals := signature(k, t)
		fmt.Fprintf(&b, "kernel void %s(%s", k.Name, strings.Join(pass, ", "))
		b.WriteString(strings.Repeat("\n", strings.Count(u.text[k.start:k.shut], "\n")))
		b.WriteString(u.text[k.shut:k.brace+1] + " " + strings.Join(locals, " "))
		body := u.text[k.brace+1 : k.end+1]
		if t == CPU {
			body = arenaVariables(body, &vars)
		}
		b.WriteString(body)
		last = k.end + 1
	}
	b.WriteString(u.text[last:])
	if t == CPU {
		for _, k := range u.Kernels {
			b.WriteString(entryPoint(k))
		}
	}
	return b.String()
}

// signature gives the parameters that are passed and the declarations that stand for the rest.
// The argument struct is a pointer on the CPU and a value on NVIDIA, where it then lies in the
// launch itself and needs no memory.
func signature(k Kernel, t Target) (pass, locals []string) {
	for _, p := range k.Params {
		switch {
		case p.Kind == Position:
			locals = append(locals, fmt.Sprintf("[[maybe_unused]] const %s %s = metal::msl_to<%s>::of(metal::msl_%s());", p.Type, p.Name, p.Type, p.Attr))
		case p.Kind == Constant && t == CPU:
			pass = append(pass, fmt.Sprintf("constant %s* msl_%s", p.Type, p.Name))
			locals = append(locals, fmt.Sprintf("[[maybe_unused]] constant %s& %s = *msl_%s;", p.Type, p.Name, p.Name))
		case p.Kind == Constant:
			pass = append(pass, fmt.Sprintf("%s msl_%s", p.Type, p.Name))
			locals = append(locals, fmt.Sprintf("[[maybe_unused]] constant %s& %s = msl_%s;", p.Type, p.Name, p.Name))
		default:
			pass = append(pass, p.Type+" "+p.Name)
		}
	}
	return pass, locals
}

// arenaVariables turns the threadgroup variables of a body into references into the runtime's
// arena, which knows their bounds. It goes round until nothing changes, because neighbouring
// declarations share the ; between them.
func arenaVariables(body string, vars *int) string {
	for {
		next := threadgroupVar.ReplaceAllStringFunc(";"+body, func(s string) string {
			m := threadgroupVar.FindStringSubmatch(s)
			*vars++
			return fmt.Sprintf("%sthreadgroup %s (&%s)%s = *(threadgroup %s (*)%s)(ulong)msl_rt_threadgroup(%d, sizeof(%s%s));",
				m[1], m[2], m[3], m[4], m[2], m[4], *vars, m[2], m[4])
		})[1:]
		if next == body {
			return body
		}
		body = next
	}
}

func entryPoint(k Kernel) string {
	var args []string
	for _, p := range k.Params {
		switch p.Kind {
		case Constant:
			args = append(args, fmt.Sprintf("(constant %s*)a[%d]", p.Type, p.Index))
		case ReadBuffer, WriteBuffer:
			args = append(args, fmt.Sprintf("(%s)a[%d]", p.Type, p.Index))
		}
	}
	return fmt.Sprintf("\nextern \"C\" __attribute__((no_sanitize(\"thread\"))) void msl_call_%s(const __private ulong* a) { %s(%s); }\n",
		k.Name, k.Name, strings.Join(args, ", "))
}
