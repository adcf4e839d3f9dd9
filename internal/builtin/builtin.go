// Package builtin holds the model that tfbatch brings along, so that a fresh copy has
// something to run: gopher-15m and its drafter, in the binary, compressed. [Open] offers
// one as a folder that loader.Open and everything else reads like any other.
//
// What the models are, and whose work they were trained on, is in the README beside each.
package builtin

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	root   = "models"
	suffix = ".zst"
)

//go:embed models/*/*.zst
var packed embed.FS

// Names lists the models, in order of name.
func Names() []string {
	entries, err := packed.ReadDir(root)
	if err != nil {
		panic("builtin: " + err.Error()) // embedded with this very name
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Open is the folder of a model. Its files decompress while they are read, from the
// front; nothing is kept. They cannot be listed or sought.
func Open(name string) (fs.FS, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no builtin model %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return folder(name), nil
}

type folder string

// Open opens name for reading.
func (d folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) || strings.Contains(name, "/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	src, err := packed.Open(path.Join(root, string(d), name+suffix))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := unpack(name, src)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

// unpack reads the frame's header, which knows the size, and leaves the rest for later.
func unpack(name string, src io.Reader) (*file, error) {
	head, err := io.ReadAll(io.LimitReader(src, zstd.HeaderMaxSize))
	if err != nil {
		return nil, err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return nil, err
	}
	if !h.HasFCS {
		return nil, errors.New("packed without its size")
	}
	// One thread and no goroutine: a file that is never closed leaks nothing.
	d, err := zstd.NewReader(io.MultiReader(bytes.NewReader(head), src), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	f := &file{decoder: d, r: d, info: info{name: name, size: int64(h.FrameContentSize)}}
	if path.Ext(name) == ".safetensors" {
		f.r = &joiner{r: d}
	}
	return f, nil
}
