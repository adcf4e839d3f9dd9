package stages

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// The files of a job. A file under one of these names is complete; while it is written it
// has the name with partial behind it.
const (
	rowsName     = "rows.jsonl"
	errorsName   = "errors.jsonl"
	manifestName = "manifest.json"
	partial      = ".partial"
)

// ErrOutputExists refuses a folder that holds an earlier run: nothing is lost without a word.
var ErrOutputExists = errors.New("there from an earlier run; choose another --out, or --overwrite")

// OutputDir is the folder of a job's files.
func OutputDir(job *jobs.Job) string { return filepath.Join(job.Output.Dir.File, job.Name) }

// CheckOutput says beforehand whether Run would refuse the job's folder.
func CheckOutput(job *jobs.Job) error {
	found, err := earlier(OutputDir(job))
	if err == nil && len(found) > 0 {
		return fmt.Errorf("%s: %w", found[0], ErrOutputExists)
	}
	return err
}

// earlier lists the files of an earlier run, the manifest first: where it is, all is.
func earlier(dir string) ([]string, error) {
	var found []string
	for _, name := range []string{manifestName, rowsName, errorsName} {
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, name+partial)} {
			if _, err := os.Lstat(path); err == nil {
				found = append(found, path)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return found, nil
}

// removeEarlier removes the files of an earlier run.
func removeEarlier(dir string) error {
	found, err := earlier(dir)
	for _, path := range found {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// output is the files of a job while they are written.
type output struct {
	dir          string
	rows, errors *partFile
}

func create(job *jobs.Job, overwrite bool) (*output, error) {
	o := &output{dir: OutputDir(job)}
	var err error
	if overwrite {
		err = removeEarlier(o.dir)
	} else {
		err = CheckOutput(job)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return nil, err
	}
	if o.rows, err = newPart(filepath.Join(o.dir, rowsName)); err != nil {
		return nil, err
	}
	if o.errors, err = newPart(filepath.Join(o.dir, errorsName)); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// append writes a line to the rows, and to the errors too when it is one.
func (o *output) append(line []byte, failed bool) error {
	if err := o.rows.append(line); err != nil || !failed {
		return err
	}
	return o.errors.append(line)
}

// keep brings what was written to the disk under its partial name. cause is why the run ended.
func (o *output) keep(cause error) error {
	return errors.Join(cause, o.rows.f.Sync(), o.errors.f.Sync())
}

// publish gives the files their final names, the manifest last: where it is, all is.
func (o *output) publish(manifest []byte) error {
	m, err := newPart(filepath.Join(o.dir, manifestName))
	if err != nil {
		return o.keep(err)
	}
	defer m.close()
	if err := m.append(manifest); err != nil {
		return o.keep(err)
	}
	for _, f := range []*partFile{o.rows, o.errors, m} {
		if err := f.publish(); err != nil {
			return o.keep(err)
		}
	}
	return syncDir(o.dir)
}

// close frees the files; what matters of their errors was seen by sync.
func (o *output) close() {
	o.rows.close()
	if o.errors != nil {
		o.errors.close()
	}
}

// partFile is a file that has its final name only once it is complete.
type partFile struct {
	path string
	f    *os.File
	hash hash.Hash
	size int64
}

func newPart(path string) (*partFile, error) {
	f, err := os.OpenFile(path+partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &partFile{path: path, f: f, hash: sha256.New()}, nil
}

// append writes a whole line at once: who reads along sees no part of one.
func (p *partFile) append(line []byte) error {
	p.hash.Write(line)
	p.size += int64(len(line))
	_, err := p.f.Write(line)
	return err
}

func (p *partFile) digest() row.Digest { return row.Digest(p.hash.Sum(nil)) }

func (p *partFile) publish() error {
	if err := p.f.Sync(); err != nil {
		return err
	}
	return os.Rename(p.path+partial, p.path)
}

func (p *partFile) close() { _ = p.f.Close() }

// syncDir brings the new names to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
