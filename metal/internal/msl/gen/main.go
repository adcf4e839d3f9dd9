// Gen writes what is generated from the kernel files: the Go side of their parameters and
// the PTX that the CUDA device embeds. It is run by go generate in metal/kernels, and needs
// clang; nothing else does.
//
//	gen -kernels metal/kernels -bind metal/kernels/zbind.go -ptx internal/cuda/ptx
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"tfbatch/metal/internal/msl"
)

func main() {
	kernels := flag.String("kernels", ".", "folder of the .metal files")
	bind := flag.String("bind", "zbind.go", "Go file to write")
	ptx := flag.String("ptx", "", "folder for the PTX files")
	flag.Parse()
	if err := generate(*kernels, *bind, *ptx); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func generate(kernels, bind, ptx string) error {
	dir, err := os.MkdirTemp("", "msl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := msl.Generate(dir, kernels)
	if err != nil {
		return err
	}
	for name, data := range files {
		path := bind
		if name != msl.BindFile {
			path = filepath.Join(ptx, name)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
