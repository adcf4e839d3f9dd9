package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tfbatch/internal/journal"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// The files of a job. The journal is the truth while the job runs; the others are made of it
// at the end, in the order of the input. A file under its final name is complete; while it is
// written it has the name with partial behind it. The manifest comes last: where it is, all is.
const (
	rowsName     = "rows.jsonl"
	errorsName   = "errors.jsonl"
	manifestName = "manifest.json"
	journalName  = "journal.log"
	lockName     = "lock"
	partial      = ".partial"
)

// MetricsName is the file of what runs measured of themselves. Stages leave it alone and no other file depends on it.
const MetricsName = "metrics.jsonl"

// ErrOutputExists refuses a folder that holds files of no run that could be gone on with:
// nothing is lost without a word.
var ErrOutputExists = errors.New("there, and not of a run that could be gone on with; choose another --out, or --overwrite")

// ErrNoJournal refuses to make error rows again where the journal is gone.
var ErrNoJournal = errors.New("not there any more, so no row can be made again alone; begin anew with --overwrite")

// OutputDir is the folder of a job's files.
func OutputDir(job *jobs.Job) string { return filepath.Join(job.Output.Dir.File, job.Name) }

// Folder is a job's folder, held against other runs until it is closed.
type Folder struct {
	disk    Disk
	dir     string
	job     *jobs.Job
	options FolderOptions
	unlock  func() error

	is       identity  // what would run, its shards not known yet
	was      *identity // what an earlier run was; nil: none
	manifest *manifest // of a finished run
	file     File      // of the journal
	done     *doneRows // nil: nothing was begun
	total    int64     // rows of the input, 0: not known
}

// FolderOptions say how an earlier run is gone on with.
type FolderOptions struct {
	Overwrite   bool // remove what is there and begin anew
	RetryErrors bool // make the rows again that failed
	Disk        Disk // nil: the system's
	Shard       Shard
}

// OpenFolder takes the lock of a job's folder and holds what an earlier run left there
// against what would run now. It changes nothing but a torn record at the end of a journal.
// Model may lack its shards, which are known once they were loaded.
func OpenFolder(job *jobs.Job, p *Provenance, stdin io.Reader, o FolderOptions) (*Folder, error) {
	if o.Disk == nil {
		o.Disk = osDisk{}
	}
	f := &Folder{disk: o.Disk, dir: o.Shard.dir(job), job: job, options: o}
	f.is = identity{Job: job.Canonical(), Arithmetic: p.Arithmetic, Model: p.Model}
	if err := f.disk.MkdirAll(f.dir); err != nil {
		return nil, err
	}
	var err error
	if f.unlock, err = f.disk.Lock(f.path(lockName)); err != nil {
		return nil, err
	}
	if err := f.open(stdin); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *Folder) open(stdin io.Reader) error {
	var err error
	if !f.options.Overwrite {
		if err = f.found(); err != nil {
			return err
		}
	}
	if err = f.lookAtInput(stdin); err != nil {
		return err
	}
	if err := f.compare(); err != nil {
		return err
	}
	if f.options.RetryErrors && f.done != nil {
		return f.done.dropErrors()
	}
	return nil
}

// found reads what an earlier run left.
func (f *Folder) found() error {
	if err := f.openManifest(); err != nil {
		return err
	}
	if f.manifest != nil && !f.retries() {
		return nil
	}
	err := f.openJournal()
	if err != nil || f.done != nil {
		return err
	}
	if f.manifest != nil {
		return fmt.Errorf("%s: %w", f.path(journalName), ErrNoJournal)
	}
	for _, name := range []string{rowsName, errorsName} {
		if there, err := exists(f.disk, f.path(name)); err != nil || there {
			return errors.Join(err, fmt.Errorf("%s: %w", f.path(name), ErrOutputExists))
		}
	}
	return nil
}

// retries reports whether a finished job is opened again for its error rows.
func (f *Folder) retries() bool {
	return f.options.RetryErrors && f.manifest != nil && f.manifest.Counts.Errors > 0
}

func (f *Folder) openManifest() error {
	path := f.path(manifestName)
	file, err := f.disk.Open(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m := &manifest{}
	if json.Unmarshal(data, m) != nil || m.Format != manifestFormat || len(data) > maxManifest {
		return fmt.Errorf("%s: %w", path, ErrOutputExists)
	}
	f.manifest = m
	f.was = &identity{Job: m.Job, Arithmetic: m.Arithmetic, Model: m.Model, Input: m.Input.SHA256}
	return nil
}

func (f *Folder) openJournal() error {
	path := f.path(journalName)
	file, err := f.disk.Open(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.file = file
	size, err := file.Size()
	if err != nil {
		return err
	}
	s, err := scanJournal(file, size)
	if err != nil {
		return fmt.Errorf("%s: %w; move it away to begin anew", path, err)
	}
	f.done, f.was = s.done, s.id
	return nil
}

// scanJournal takes in what a journal of the given size has, and makes it ready for more.
func scanJournal(file journal.File, size int64) (*scanner, error) {
	s := &scanner{done: newDoneRows(), size: size}
	log, _, err := journal.Open(file, size, s.record)
	if err == nil {
		s.done.log = log
		err = s.finish()
	}
	if err == nil && s.id == nil {
		err = fmt.Errorf("%w: it has no identity", journal.ErrFormat)
	}
	return s, err
}

// lookAtInput reads the input through: its digest is part of what the job is, and knowing
// how many rows it has costs little more. Standard input can be read once, so it is only
// looked at where no row will be made of it.
func (f *Folder) lookAtInput(stdin io.Reader) error {
	path := f.job.Input.Path.File
	if path == jobs.StdinPath && !f.Complete() {
		return nil
	}
	src, err := openSource(path, stdin)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) && f.was != nil {
			return &Changed{f.dir, []string{fmt.Sprintf("input: %s -> %v", f.job.Input.Path.Name, err)}}
		}
		return fmt.Errorf("input %s: %w", f.job.Input.Path.Name, err)
	}
	defer src.close()
	if f.job.Input.OnDuplicate != jobs.OnDuplicateSkip { // how many of those there are is not known yet
		f.total = countRows(src, &f.job.Input)
	}
	if f.is.Input, err = src.digest(); err != nil {
		return fmt.Errorf("input %s: %w", f.job.Input.Path.Name, err)
	}
	return nil
}

// countRows counts lines that are not blank, 0 when the input ends in an error: the run will
// come to it and say which.
func countRows(src *source, in *jobs.Input) (rows int64) {
	l := newLines(src.text, in.MaxLineBytes)
	for in.MaxRows == 0 || rows < in.MaxRows {
		one, err := l.next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			return 0
		}
		if !one.blank() {
			rows++
		}
	}
	return rows
}

// compare refuses to go on with what something else has begun.
func (f *Folder) compare() error {
	if f.was == nil {
		return nil
	}
	if list := f.was.differences(f.is); len(list) > 0 {
		return &Changed{f.dir, list}
	}
	return nil
}

// Complete reports whether the job was finished by an earlier run, and nothing is to be done.
func (f *Folder) Complete() bool { return f.manifest != nil && !f.retries() }

// Begun reports whether there is an earlier run to go on with.
func (f *Folder) Begun() bool { return f.done != nil }

// MetricsPath is the file for what the run measures of itself.
func (f *Folder) MetricsPath() string { return f.path(MetricsName) }

// Done is how many rows an earlier run has done, of how many, 0 when that is not known.
func (f *Folder) Done() (rows, total int64) {
	if f.done == nil {
		return 0, f.total
	}
	return f.done.counts.Rows, f.total
}

// Finished is the report of a job that an earlier run has finished, once its shards are known
// to be the same.
func (f *Folder) Finished(shards []FileDigest) (*Report, error) {
	f.is.Model.Shards = shards
	if err := f.compare(); err != nil {
		return nil, err
	}
	m := f.manifest
	return &Report{Counts: m.Counts, Complete: true, Root: m.Root, Dir: f.dir}, f.tidy(m.Counts.Errors == 0)
}

// tidy removes what a run that was killed at its very end may have left.
func (f *Folder) tidy(finished bool) error {
	names := []string{rowsName + partial, errorsName + partial, manifestName + partial, journalName + partial}
	if finished { // without error rows nothing can be made again
		names = append(names, journalName)
	}
	return f.remove(names...)
}

func (f *Folder) remove(names ...string) error {
	for _, name := range names {
		if err := f.disk.Remove(f.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// begin makes the journal ready for this run's rows.
func (f *Folder) begin(p *Provenance, now time.Time) error {
	f.is.Model.Shards = p.Model.Shards
	if err := f.compare(); err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	if f.done == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	one := session{now.UTC(), p.Version}
	f.done.sessions = append(f.done.sessions, one)
	if _, err := f.done.log.Append(sessionRecord, encodeJSON(one)); err != nil {
		return err
	}
	return f.done.log.Sync()
}

// clear removes the manifest, for the job is not complete any more, and where the run begins
// anew all other files too.
func (f *Folder) clear() error {
	if err := f.remove(manifestName); err != nil {
		return err
	}
	if f.options.Overwrite {
		if err := f.remove(journalName, rowsName, errorsName); err != nil {
			return err
		}
	}
	if err := f.tidy(false); err != nil {
		return err
	}
	return syncDir(f.disk, f.dir)
}

// create begins a journal. It has its name once it has its identity.
func (f *Folder) create() error {
	path := f.path(journalName)
	file, err := f.disk.Open(path+partial, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	f.file, f.done = file, newDoneRows()
	if f.done.log, err = journal.Create(file); err != nil {
		return err
	}
	if _, err := f.done.log.Append(identityRecord, encodeJSON(f.is)); err != nil {
		return err
	}
	if err := f.done.log.Sync(); err != nil {
		return err
	}
	if err := f.disk.Rename(path+partial, path); err != nil {
		return err
	}
	return syncDir(f.disk, f.dir)
}

// Close gives the folder back.
func (f *Folder) Close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	if f.unlock != nil {
		err = errors.Join(err, f.unlock())
		f.unlock = nil
	}
	return err
}

// State says in a word what a run would find in a job's folder: "" for nothing, "begun" or
// "complete". It takes no lock and may be out of date at once.
func State(job *jobs.Job) (string, error) {
	for _, s := range []struct{ name, word string }{{manifestName, "complete"}, {journalName, "begun"}} {
		there, err := exists(osDisk{}, filepath.Join(OutputDir(job), s.name))
		if err != nil || there {
			return s.word, err
		}
	}
	for _, name := range []string{rowsName, errorsName} {
		path := filepath.Join(OutputDir(job), name)
		if there, err := exists(osDisk{}, path); err != nil || there {
			return "", errors.Join(err, fmt.Errorf("%s: %w", path, ErrOutputExists))
		}
	}
	return "", nil
}

// sameInput holds the digest of what was read against what was looked at before.
func (f *Folder) sameInput(read row.Digest) error {
	if f.is.Input == (row.Digest{}) || f.is.Input == read {
		return nil
	}
	return &Changed{f.dir, []string{fmt.Sprintf("input %s, while it was read: sha256 %v -> %v", f.job.Input.Path.Name, f.is.Input, read)}}
}
