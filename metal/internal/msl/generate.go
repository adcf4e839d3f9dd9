package msl

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// BindFile is the key of the Go file in the result of Generate; the others are x.ptx.
const BindFile = "zbind.go"

// Generate makes every generated file from the folder of kernel files, using dir for scratch.
func Generate(dir, kernels string) (map[string][]byte, error) {
	t, err := NewToolchain(dir, kernels)
	if err != nil {
		return nil, err
	}
	units, err := t.ParseFolder(kernels)
	if err != nil {
		return nil, err
	}
	bind, err := Bindings(units)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{BindFile: bind}
	for _, u := range units {
		if files[u.File+".ptx"], err = t.PTX(u); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// ParseFolder parses every .metal file of a folder, in the order of their names.
func (t *Toolchain) ParseFolder(kernels string) ([]*Unit, error) {
	paths, err := filepath.Glob(filepath.Join(kernels, "*.metal"))
	if err != nil {
		return nil, err
	}
	var units []*Unit
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		u, err := t.Parse(strings.TrimSuffix(filepath.Base(path), ".metal"), string(text))
		if err != nil {
			return nil, err
		}
		units = append(units, u)
	}
	return units, nil
}

// ReadCompressed reads a generated file that was written through gzip.
func ReadCompressed(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
