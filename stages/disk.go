package stages

import (
	"errors"
	"io"
	"os"

	"tfbatch/internal/journal"
)

// Disk is what a job's folder needs of a file system. Five methods, where three are usual:
// they are what a test must be able to fail, tear and lose one by one. Nil stands for the
// system's own.
type Disk interface {
	// Open is os.OpenFile, of a folder too, whose Sync keeps the names in it.
	Open(name string, flag int) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	MkdirAll(name string) error
	// Lock holds name against every other process until the result is called. A lock that is
	// taken is journal.ErrLocked.
	Lock(name string) (unlock func() error, err error)
}

// File is an open file of a Disk.
type File interface {
	journal.File
	io.Reader
	Size() (int64, error)
	Close() error
}

type osDisk struct{}

func (osDisk) Open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(name string) error     { return os.Remove(name) }
func (osDisk) MkdirAll(name string) error   { return os.MkdirAll(name, 0o755) }

func (osDisk) Lock(name string) (func() error, error) { return journal.Lock(name) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// syncDir brings the names in a folder to the disk.
func syncDir(d Disk, dir string) error {
	f, err := d.Open(dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// exists reports whether a file has this name.
func exists(d Disk, name string) (bool, error) {
	f, err := d.Open(name, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
