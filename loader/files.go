package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tfbatch/internal/regular"
)

// Dir is the folder at path as a file system that nothing escapes from: a link
// that leaves the folder is refused, and says what to do about it. What is neither
// a file nor a folder is refused too, without waiting for it.
func Dir(path string) fs.FS { return dir{path, "."} }

// DirIn is the folder below, a slash-separated path in the folder root. Its links may
// go anywhere in root, and not out of it.
func DirIn(root, below string) fs.FS { return dir{root, below} }

type dir struct{ root, below string }

// Open opens name for reading.
func (d dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	at := filepath.Join(filepath.FromSlash(d.below), filepath.FromSlash(name))
	f, err := regular.In(root, at)
	if err == nil {
		return f, nil
	}
	if info, no := root.Lstat(at); no == nil && info.Mode()&fs.ModeSymlink != 0 && leaves(err) {
		return nil, fmt.Errorf("%s in %s is a link out of that folder; copy the folder with its links followed (cp -rL) and give the copy: %w", name, d.root, err)
	}
	return nil, err
}

// leaves is whether err is os.Root's, which has no name for it: not of a file that is missing or of another kind.
func leaves(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
}

// openFile opens a regular file. The caller closes it.
func openFile(fsys fs.FS, name string) (fs.File, fs.FileInfo, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular.Check(name, info)
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
