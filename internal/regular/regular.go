// Package regular opens files, and nothing that only has the name of one: opening a named pipe waits for a
// writer that may never come, and reading a device may never end. [Open] and [In] refuse both by name, without
// waiting, and a directory too.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Open opens the file at path for reading. Links are followed.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, opening(err)
	}
	if err := Check(path, info); err != nil {
		return nil, err
	}
	return again(os.OpenFile(path, flags, 0))
}

// In opens name for reading, a directory too, which the caller may list. No link is followed out of root.
func In(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, opening(err)
	}
	if info.IsDir() {
		return root.Open(name)
	}
	if err := Check(name, info); err != nil {
		return nil, err
	}
	return again(root.OpenFile(name, flags, 0))
}

// opening says of an error what it kept the caller from.
func opening(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		path.Op = "open"
	}
	return err
}

// flags let an open return at once where a pipe has taken the file's place since it was looked at.
const flags = os.O_RDONLY | syscall.O_NONBLOCK

// again looks at what was opened: it may not be what was looked at before.
func again(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(f.Name(), info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Check is an error that says what info is of, unless it is of a file.
func Check(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is %s, not a file", name, kind(info.Mode()))
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	}
	return "of an unknown kind"
}
