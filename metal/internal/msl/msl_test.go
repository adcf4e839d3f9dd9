package msl

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withClang makes the tests that run the compiler run, and fail where it is missing.
var withClang = flag.Bool("clang", false, "run the tests that need "+Clang)

const kernelFolder = "../../kernels"

func toolchain(t *testing.T) *Toolchain {
	t.Helper()
	if !*withClang {
		t.Skip("needs " + Clang + ": run with -clang")
	}
	tools, err := NewToolchain(t.TempDir(), kernelFolder)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// TestGeneratedFilesAreFresh holds what is committed to what the kernel files give now.
func TestGeneratedFilesAreFresh(t *testing.T) {
	tools := toolchain(t)
	files, err := Generate(tools.dir, kernelFolder)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		var got []byte
		if name == BindFile {
			got, err = os.ReadFile(filepath.Join(kernelFolder, name))
		} else {
			got, err = ReadCompressed(filepath.Join("../../../internal/cuda/ptx", name+".gz"))
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale, run go generate ./metal/kernels: %v", name, err)
		}
	}
}

func TestKernelsPassLint(t *testing.T) {
	tools := toolchain(t)
	units, err := tools.ParseFolder(kernelFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		if err := tools.Lint(u); err != nil {
			t.Error(err)
		}
	}
}

// forbidden is PTX that fma-v1 has no place for: flushed subnormals, approximations, a
// division or root of less than full accuracy, registers in memory.
var forbidden = regexp.MustCompile(`\.ftz|\.approx|div\.full|\.local|mad\.f32|fma\.rn\.ftz`)

func TestPTXKeepsTheArithmetic(t *testing.T) {
	paths, err := filepath.Glob("../../../internal/cuda/ptx/*.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal("no PTX", err)
	}
	for _, path := range paths {
		text, err := ReadCompressed(path)
		if err != nil {
			t.Fatal(err)
		}
		if bad := forbidden.Find(text); bad != nil {
			t.Errorf("%s has %s", filepath.Base(path), bad)
		}
	}
	if forbidden.FindString("div.approx.f32") == "" {
		t.Error("an approximation is not seen")
	}
}

const head = "#include <metal_stdlib>\nusing namespace metal;\nstruct KArgs { uint n; };\n"

// kernel is a kernel around a body, with a struct before it.
func kernel(before, body string) string {
	return head + before + `
[[max_total_threads_per_threadgroup(32)]]
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant KArgs& args [[buffer(2)]],
              uint i [[threadgroup_position_in_grid]]) {` + body + "}\n"
}

// refuse says whether a snippet is refused, and how.
func refuse(tools *Toolchain, text string) error {
	u, err := tools.Parse("snippet", text)
	if err != nil {
		return err
	}
	if _, err := Bindings([]*Unit{u}); err != nil {
		return err
	}
	return tools.Lint(u)
}

// TestRefusals has one snippet for each rule of Metal's that the tools know, with a part of
// the message, and three correct ones that must pass.
func TestRefusals(t *testing.T) {
	tools := toolchain(t)
	for _, c := range []struct{ name, text, want string }{
		{"correct kernel", kernel("", "y[i] = x[i];"), ""},
		{"threadgroup memory", kernel("", "threadgroup float b[4]; b[i & 3] = x[i]; y[i] = b[i & 3];"), ""},
		{"struct of constants", kernel("struct S { float v[2]; };", "S s; s.v[0] = x[i]; y[i] = s.v[0];"), ""},
		{"device to threadgroup", kernel("void h(threadgroup float* p) { p[0] = 1; }", "h(y);"), "no matching function"},
		{"device to thread", kernel("float h(thread const float* p) { return p[0]; }", "y[0] = h(x);"), "no matching function"},
		{"constant to device", kernel("", "device const uint* p = &args.n; y[0] = *p;"), "cannot initialize a variable of type 'const __global"},
		{"write through constant", kernel("", "args.n = 3;"), "not assignable"},
		{"write through const device", kernel("", "((device const float*)y)[0] = 1;"), "not assignable"},
		{"C cast between spaces", kernel("", "thread float* p = (thread float*)y; p[0] = 1;"), "address space"},
		{"reinterpret_cast between spaces", kernel("", "auto p = reinterpret_cast<threadgroup float*>(y); p[0] = 1;"), "reinterpret_cast"},
		{"reinterpret_cast of elements", kernel("", "auto p = reinterpret_cast<device uint*>(x); p[0] = 1;"), "reinterpret_cast"},
		{"program-scope variable", kernel("float g[2] = {1, 2};", "y[0] = g[i];"), "program scope variable"},
		{"program-scope constexpr", kernel("constexpr int g = 2;", "y[0] = g;"), "program scope variable"},
		{"threadgroup variable in a helper", kernel("void h(device float* y) { threadgroup float b[4]; b[0] = 1; y[0] = b[0]; }", "h(y);"), "local"},
		{"initialised threadgroup variable", kernel("", "threadgroup float b = 1; y[i] = b;"), "__local"},
		{"function pointer", kernel("float f(float v) { return v; }", "float (*p)(float) = f; y[0] = p(1);"), "function"},
		{"virtual function", kernel("struct A { virtual int f() { return 1; } };", "A a; y[0] = a.f();"), "virtual"},
		{"recursion", kernel("float f(float v) { return v < 1 ? 0 : f(v - 1) + 1; }", "y[0] = f(x[0]);"), "recursion"},
		{"new", kernel("", "int* p = new int; y[0] = *p;"), "new"},
		{"exceptions", kernel("", "try { y[0] = 1; } catch (...) { }"), "exceptions"},
		{"goto", kernel("", "goto a; a: y[0] = 1;"), "goto"},
		{"double", kernel("", "double d = x[0]; y[0] = d * 2;"), "double"},
		{"static local", kernel("", "static int c = 0; y[0] = c++;"), "static"},
		{"lambda", kernel("", "auto f = [](float v) { return v * 2; }; y[0] = f(x[0]);"), "lambda"},
		{"pointer parameter without a space", kernel("float h(const float* p) { return p[0]; }", "float v[2] = {1, 2}; y[0] = h(v);"), "without an address space"},
		{"pointer without a space", kernel("", "float* p = y; p[0] = 1;"), "without an address space"},
		{"reference without a space", kernel("void h(float& p) { p = 1; }", "float v; h(v); y[0] = v;"), "without an address space"},
		{"method on a device object", kernel("struct A { float v; float get() { return v; } };", "y[0] = ((device A*)y)[0].get();"), "method called on a global object"},
		{"narrowing", kernel("", "int v{x[0]}; y[0] = v;"), "narrow"},
		{"unknown function", kernel("", "y[0] = erfinv(x[0]);"), "undeclared identifier"},
		{"function of a reduction", kernel("", "y[0] = simd_sum(x[0]);"), "undeclared identifier"},
		{"vector conversion", kernel("", "float4 a = 1.0f; uint4 b = a; y[0] = b.x;"), "cannot initialize"},
		{"no group size", strings.Replace(kernel("", ""), "[[max_total_threads_per_threadgroup(32)]]", "", 1), "no [[max_total"},
		{"odd group size", strings.Replace(kernel("", ""), "group(32)", "group(33)", 1), "multiple of 32"},
		{"index twice", strings.Replace(kernel("", ""), "buffer(1)", "buffer(0)", 1), "buffer index 0, want 1"},
		{"index out of range", strings.Replace(kernel("", ""), "buffer(1)", "buffer(31)", 1), "want 0 to 30"},
		{"unknown attribute", strings.Replace(kernel("", ""), "threadgroup_position_in_grid", "thread_position_in_grid", 1), "is not used here"},
		{"arguments by pointer", strings.Replace(kernel("", ""), "KArgs&", "KArgs*", 1), "want device T*"},
		{"struct with a pointer", strings.Replace(kernel("", ""), "uint n;", "uint* n;", 1), "want uint or float"},
		{"struct with a long", strings.Replace(kernel("", ""), "uint n;", "ulong n;", 1), "want uint or float"},
		{"two parameter lists for a struct", kernel("[[max_total_threads_per_threadgroup(32)]] kernel void j(device float* z [[buffer(0)]], constant KArgs& args [[buffer(1)]]) {}", ""), "share KArgs"},
	} {
		err := refuse(tools, c.text)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: refused: %v", c.name, err)
		case c.want != "" && err == nil:
			t.Errorf("%s: accepted", c.name)
		case c.want != "" && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: refused for another reason than %q: %v", c.name, c.want, err)
		}
	}
}

// offered is everything of namespace metal that the shim has, with the section of the Metal
// Shading Language Specification (version 4) that has it too.
var offered = map[string]string{
	"as_type":             "2.19 type conversions and reinterpreting data",
	"mem_flags":           "6.9.1 threadgroup and simdgroup synchronization",
	"threadgroup_barrier": "6.9.1 threadgroup and simdgroup synchronization",
	"simdgroup_barrier":   "6.9.1 threadgroup and simdgroup synchronization",
	"simd_shuffle":        "6.9.2 simdgroup functions",
	"simd_shuffle_xor":    "6.9.2 simdgroup functions",
	"min":                 "6.3 integer functions",
	"max":                 "6.3 integer functions",
	"fma":                 "6.5 math functions",
	"rint":                "6.5 math functions",
	"sqrt":                "6.5 math functions, in metal::precise",
}

var (
	declared = regexp.MustCompile(`(?m)^(?:__attribute__\(\(convergent\)\) )?MSL_INL (?:\w+ )+(\w+)\(`)
	scoped   = regexp.MustCompile(`enum class (\w+)`)
)

// TestShimOffersOnlyMetal keeps the shim smaller than Metal: what is not on the list has no
// place there, unless its name says that it is the shim's own.
func TestShimOffersOnlyMetal(t *testing.T) {
	text, err := sources.ReadFile("shim/metal_stdlib")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, re := range []*regexp.Regexp{declared, scoped} {
		for _, m := range re.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "msl_") {
				names = append(names, m[1])
			}
		}
	}
	for _, n := range names {
		if offered[n] == "" {
			t.Errorf("the shim offers %s, which is not on the list", n)
		}
	}
	for n := range offered {
		if n != "as_type" && !slices.Contains(names, n) { // as_type is a template
			t.Errorf("the list has %s, which the shim does not offer", n)
		}
	}
}
