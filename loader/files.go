package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the folder at path as a file system that nothing escapes from: a link
// that leaves the folder is refused, and says what to do about it.
func Dir(path string) fs.FS { return dir(path) }

type dir string

// Open opens name for reading.
func (d dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := os.OpenInRoot(string(d), filepath.FromSlash(name))
	if err == nil {
		return f, nil
	}
	if d.isLink(name) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s in %s is a link out of that folder, as in the cache of huggingface_hub; copy the folder with its links followed (cp -rL) and give the copy: %w", name, string(d), err)
	}
	return nil, err
}

func (d dir) isLink(name string) bool {
	info, err := os.Lstat(filepath.Join(string(d), filepath.FromSlash(name)))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// openFile opens a regular file. The caller closes it.
func openFile(fsys fs.FS, name string) (fs.File, fs.FileInfo, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func exists(fsys fs.FS, name string) (bool, error) {
	_, err := fs.Stat(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readFile reads all of a file of at most limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, info, err := openFile(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, info.Size(), limit)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s grew past %d bytes while it was read", name, limit)
	}
	return raw, nil
}
