package msl

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Clang is the compiler. One version, because generated PTX is compared byte for byte.
const Clang = "clang-19"

//go:embed shim rt
var sources embed.FS

// Toolchain is clang with the shim unpacked in a folder.
type Toolchain struct {
	dir     string // holds shim/, rt/ and what is built
	include string // the folder of the kernel files
}

// Including is the toolchain with kernel files that include from another folder.
func (t *Toolchain) Including(folder string) *Toolchain {
	return &Toolchain{dir: t.dir, include: folder}
}

// NewToolchain unpacks the shim into dir. Kernel files include from the folder include.
func NewToolchain(dir, include string) (*Toolchain, error) {
	if _, err := exec.LookPath(Clang); err != nil {
		return nil, fmt.Errorf("%s is needed: %w", Clang, err)
	}
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
	return &Toolchain{dir: dir, include: include}, err
}

// Parse preprocesses and parses a kernel file given as text. The shim is left out here: what
// macros of the file's own make is seen, and the standard header stays one line.
func (t *Toolchain) Parse(file, text string) (*Unit, error) {
	out, err := t.run(text, "-E", "-x", "c++", "-nostdinc", "-D__METAL_VERSION__=310", "-I", filepath.Join(t.dir, "shim/pp"), "-I", t.include, "-")
	if err != nil {
		return nil, err
	}
	named := strings.ReplaceAll(string(out), `"<stdin>"`, `"`+file+`.metal"`)
	return Parse(file, named)
}

// Common flags: safe math, no contraction, nothing of OpenCL's own library.
var language = []string{
	"-x", "clcpp", "-cl-std=clc++2021", "-nostdinc", "-cl-no-stdinc", "-cl-fp32-correctly-rounded-divide-sqrt", "-ffp-contract=off", "-O3",
	"-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-function", "-Wno-pass-failed",
}

// The extensions that are off make clang refuse what Metal refuses: program-scope variables
// outside constant, and double.
var cpuTarget = []string{
	"--target=x86_64-linux-gnu", "-march=x86-64-v3", "-fPIC", "-g1",
	"-Xclang", "-cl-ext=-__opencl_c_device_enqueue,-__opencl_c_pipes,-__opencl_c_program_scope_global_variables,-cl_khr_fp64,-__opencl_c_fp64",
}

// Kernels are built for sm_80, the oldest GPU with the memory to be of use; drivers compile
// it for newer ones. Without the thresholds template bodies become calls and the largest loops
// stay loops, with their registers in memory.
var ptxTarget = []string{
	"--target=nvptx64-nvidia-cuda", "-march=sm_80", "-Xclang", "-target-feature", "-Xclang", "+ptx70", "-mllvm", "-inline-threshold=1000000",
	"-mllvm", "-pragma-unroll-threshold=1000000",
	"-Xclang", "-cl-ext=+cl_khr_fp16,+__opencl_c_program_scope_global_variables,+__opencl_c_generic_address_space",
}

// The checks that the runtime's callbacks answer. -O1 keeps the accesses that the author wrote.
// Shifts are not among them: the language of the shim defines what Metal leaves open.
var checked = []string{
	"-O1", "-fsanitize=thread", "-fsanitize=bounds,integer-divide-by-zero,alignment,float-cast-overflow",
	"-Xclang", "-fsanitize-minimal-runtime", "-fsanitize-recover=all",
}

// PTX compiles a unit for NVIDIA GPUs.
func (t *Toolchain) PTX(u *Unit) ([]byte, error) {
	args := append(append([]string{}, language...), ptxTarget...)
	out, err := t.run(u.Rewrite(NVPTX), append(args, "-I", filepath.Join(t.dir, "shim"), "-S", "-o", "-", "-")...)
	return out, wrap(u.File, "ptx", err)
}

// Library links units with the runtime into a shared object at path, with the checks or
// without them (several times faster, and on several threads).
func (t *Toolchain) Library(path string, checks bool, units ...*Unit) error {
	args := []string{"-shared", "-o", path, "-Wl,-z,defs", "-lpthread", "-ldl"}
	for _, u := range units {
		obj, err := t.object(checks, u)
		if err != nil {
			return err
		}
		args = append(args, obj)
	}
	for _, c := range []string{"rt", "check"} {
		obj, err := t.runtime(c)
		if err != nil {
			return err
		}
		args = append(args, obj)
	}
	_, err := t.run("", args...)
	return err
}

// runtime compiles a file of the runtime, once.
func (t *Toolchain) runtime(name string) (string, error) {
	path := filepath.Join(t.dir, name+".o")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	_, err := t.run("", "-O2", "-g1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "-o", path, filepath.Join(t.dir, "rt", name+".c"))
	return path, err
}

// object compiles a unit, unless the same text was compiled before.
func (t *Toolchain) object(checks bool, u *Unit) (string, error) {
	text := u.Rewrite(CPU)
	path := filepath.Join(t.dir, fmt.Sprintf("%x.%v.o", sha256.Sum256([]byte(text)), checks))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	args := append(append([]string{}, language...), cpuTarget...)
	if checks {
		args = append(args, checked...)
	}
	_, err := t.run(text, append(args, "-I", filepath.Join(t.dir, "shim"), "-c", "-o", path, "-")...)
	return path, wrap(u.File, "cpu", err)
}

// Lint refuses what Metal refuses: clang by its messages, the rest from clang's syntax tree.
func (t *Toolchain) Lint(u *Unit) error {
	text := u.Rewrite(CPU)
	args := append(append([]string{}, language...), cpuTarget...)
	args = append(args, "-I", filepath.Join(t.dir, "shim"), "-fsyntax-only")
	if _, err := t.run(text, append(args, "-")...); err != nil {
		return wrap(u.File, "lint", err)
	}
	tree, err := t.run(text, append(args, "-w", "-fno-color-diagnostics", "-Xclang", "-ast-dump", "-")...)
	if err != nil {
		return wrap(u.File, "lint", err)
	}
	if found := lintTree(bytes.NewReader(tree)); len(found) > 0 {
		return fmt.Errorf("%s.metal: %s", u.File, strings.Join(found, "\n"))
	}
	return nil
}

func (t *Toolchain) run(stdin string, args ...string) ([]byte, error) {
	cmd := exec.Command(Clang, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", Clang, err, stderr.Bytes())
	}
	return out, nil
}

func wrap(file, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s.metal: %s: %w", file, what, err)
}
