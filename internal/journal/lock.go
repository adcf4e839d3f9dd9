package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// ErrLocked says that another process has the lock. The error that wraps it names that process.
var ErrLocked = errors.New("another run has this folder")

// Lock takes the lock file at path, and holds it until unlock is called or the process dies.
// It never waits. The file names the process that holds it and goes with the lock; one that
// a killed process left behind is taken over.
func Lock(path string) (unlock func() error, err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lockFile(f); err != nil {
			defer f.Close()
			return nil, lockError(f, err)
		}
		if !sameFile(f, path) { // whoever had it before has just removed it
			f.Close()
			continue
		}
		if err := name(f); err != nil {
			f.Close()
			return nil, err
		}
		// It is removed first: behind the close it may be another's.
		return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
	}
}

// name writes which process holds the lock.
func name(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "pid %d\n", os.Getpid()), 0)
	return err
}

// lockError names the holder of a lock that is taken.
func lockError(f *os.File, err error) error {
	if !errors.Is(err, ErrLocked) {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	holder, _ := io.ReadAll(io.LimitReader(f, 64)) // not written yet, or unreadable: then there is no name
	text := strings.TrimSpace(string(holder))
	if text == "" {
		text = "a process not known"
	}
	return fmt.Errorf("%s: %w: %s", f.Name(), ErrLocked, text)
}

// sameFile reports whether path is still the name of f.
func sameFile(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(have, there)
}
