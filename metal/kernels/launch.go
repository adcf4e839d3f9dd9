// Package kernels holds the GPU kernels in Metal Shading Language and one launcher for each
// file of them. A launcher is arithmetic only: it turns sizes and spans of memory into
// [Launch] values, which any device with the kernels compiled can run. Metal runs the text
// ([Source]); the CUDA device runs PTX generated from it.
//
// The argument structs and the table of kernels in zbind.go are generated from the .metal
// files, so a launcher that disagrees with its kernel does not compile.
package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:generate go run tfbatch/metal/internal/msl/gen -kernels . -bind zbind.go -ptx ../../internal/cuda/ptx

// Kernel is a compiled function, by name, with what a host has to know of it.
type Kernel struct {
	Name, File string
	Threads    int     // of a threadgroup
	Buffers    []Param // in the order of their indexes; the argument struct comes after them
	ArgsSize   int
}

// Param is a buffer of a kernel.
type Param struct {
	Name    string
	Written bool
}

// Mem is a piece of device memory, at least 256-byte aligned. Devices hand it out.
type Mem interface{ Bytes() int64 }

// Span is part of a piece of memory: Len bytes from Off.
type Span struct {
	Mem      Mem
	Off, Len int64
}

// From is the span without its first n bytes.
func (s Span) From(n int64) Span { return Span{s.Mem, s.Off + n, s.Len - n} }

// Launch is one run of a kernel: Grid threadgroups of Kernel.Threads threads. Launches are
// run in order, each after the memory of the one before is visible.
type Launch struct {
	Kernel  *Kernel
	Grid    [3]uint32
	Buffers []Span
	Args    []byte
	Work    int64 // multiply-adds of a matrix product or of attention; 0 of what is bound by memory
}

//go:embed *.metal *.h
var files embed.FS

// Source is the text of a kernel file with its includes put in their places, each once:
// what Metal's run-time compiler takes.
func Source(file string) (string, error) {
	var b strings.Builder
	err := expand(&b, file+".metal", map[string]bool{})
	return b.String(), err
}

func expand(b *strings.Builder, name string, seen map[string]bool) error {
	if seen[name] {
		return nil
	}
	seen[name] = true
	text, err := files.ReadFile(name)
	if err != nil {
		return fmt.Errorf("kernels: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(line, `#include "`); ok {
			if err := expand(b, strings.TrimSuffix(strings.TrimSpace(file), `"`), seen); err != nil {
				return err
			}
			continue
		}
		b.WriteString(line)
	}
	return nil
}

// flatThreads is the threadgroup of kernels with one thread a value.
const flatThreads = 256

// flat is the grid of n threads, one a value.
func flat(n int) [3]uint32 { return [3]uint32{uint32(ceilDiv(n, flatThreads)), 1, 1} }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
