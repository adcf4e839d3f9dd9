// Gen writes what is generated from the kernel files: the Go side of their parameters and
// the PTX that the CUDA device embeds. It is run by go generate in metal/kernels, and needs
// clang; nothing else does.
//
//	gen -kernels metal/kernels -bind metal/kernels/zbind.go -ptx internal/cuda/ptx
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
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
		if name == msl.BindFile {
			err = os.WriteFile(bind, data, 0o644)
		} else {
			err = writeCompressed(filepath.Join(ptx, name+".gz"), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeCompressed leaves a file alone that holds the same text, so that another version of
// the compressor makes no difference.
func writeCompressed(path string, text []byte) error {
	if old, err := msl.ReadCompressed(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
