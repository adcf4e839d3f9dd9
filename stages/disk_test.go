package stages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"tfbatch/internal/journal"
)

// memDisk is a disk in memory that fails at one operation. It knows what was brought to the
// disk and what was not, so that it can lose the rest as a power cut does.
type memDisk struct {
	mu     sync.Mutex
	names  map[string]*memFile
	synced map[string]*memFile // names that a sync of their folder has kept
	locked bool

	fault fault
	at    int // operation that fails, from 1; 0: none
	ops   int
	dead  bool
}

type memFile struct{ data, synced []byte }

// fault is what happens at the operation.
type fault int

const (
	killed     fault = iota // the process dies before it
	torn                    // the process dies in the middle of it
	powerCut                // the machine dies: nothing that was not synced is there any more
	powerTorn               // the machine dies: part of it is, and zeros in the place of the rest
	powerNames              // the machine dies: every name is there already, but not what was not synced
	full                    // it fails, half of it done, and so does every later one that needs room
	fullOnce                // it fails, half of it done, and there is room again
	faultKinds = iota
)

// power reports whether the machine dies, and not only the process.
func (f fault) power() bool { return f == powerCut || f == powerTorn || f == powerNames }

var errDead = errors.New("dead")

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*memFile{}, synced: map[string]*memFile{}}
}

// arm lets the n-th operation from now fail.
func (d *memDisk) arm(n int, f fault) { d.at, d.ops, d.fault = n, 0, f }

func (d *memDisk) fired() bool { return d.at > 0 && d.ops >= d.at }

// reboot is the disk as the next process finds it.
func (d *memDisk) reboot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead && d.fault.power() {
		if d.fault != powerNames {
			d.names = maps.Clone(d.synced)
		}
		for _, f := range d.names {
			lost := f.data[min(len(f.synced), len(f.data)):]
			f.data = bytes.Clone(f.synced)
			if d.fault == powerTorn {
				f.data = append(append(f.data, lost[:len(lost)/2]...), make([]byte, len(lost)-len(lost)/2)...)
			}
			f.synced = bytes.Clone(f.data)
		}
	}
	d.dead, d.locked, d.at = false, false, 0
}

// op counts an operation that changes the disk. half does part of it.
func (d *memDisk) op(room bool, half func()) error {
	if d.dead {
		return errDead
	}
	d.ops++
	if d.at == 0 || d.ops < d.at {
		return nil
	}
	switch {
	case d.fault == full && (room || d.ops == d.at), d.fault == fullOnce && d.ops == d.at:
		half()
		return syscall.ENOSPC
	case d.fault == full, d.fault == fullOnce:
		return nil
	}
	if d.fault == torn || d.fault == powerTorn {
		half()
	}
	d.dead = true
	return errDead
}

func nothing() {}

func (d *memDisk) Open(name string, flag int) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errDead
	}
	f, ok := d.names[name]
	switch {
	case filepath.Ext(name) == "": // a folder
		return &memOpen{disk: d, dir: true}, nil
	case !ok && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case !ok || flag&os.O_TRUNC != 0:
		if err := d.op(true, nothing); err != nil {
			return nil, err
		}
		if !ok {
			f = &memFile{}
			d.names[name] = f
		}
		f.data = nil
	}
	return &memOpen{disk: d, file: f}, nil
}

func (d *memDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.op(false, nothing); err != nil {
		return err
	}
	f, ok := d.names[from]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	delete(d.names, from)
	d.names[to] = f
	return nil
}

func (d *memDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if err := d.op(false, nothing); err != nil {
		return err
	}
	delete(d.names, name)
	return nil
}

func (d *memDisk) MkdirAll(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.op(true, nothing)
}

func (d *memDisk) Lock(string) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, journal.ErrLocked
	}
	d.locked = true
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.locked = false
		return nil
	}, nil
}

// memOpen is an open file, or a folder.
type memOpen struct {
	disk *memDisk
	file *memFile
	dir  bool
	read int64
}

func (o *memOpen) Write(p []byte) (n int, err error) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	err = o.disk.op(true, func() {
		n = len(p) / 2
		o.file.data = append(o.file.data, p[:n]...)
	})
	if err != nil {
		return n, err
	}
	o.file.data = append(o.file.data, p...)
	return len(p), nil
}

func (o *memOpen) Truncate(size int64) error {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	if err := o.disk.op(false, nothing); err != nil {
		return err
	}
	o.file.data = o.file.data[:size]
	return nil
}

func (o *memOpen) Sync() error {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	if err := o.disk.op(false, nothing); err != nil {
		return err
	}
	if !o.dir {
		o.file.synced = bytes.Clone(o.file.data)
		return nil
	}
	clear(o.disk.synced)
	for name, f := range o.disk.names {
		o.disk.synced[name] = f
	}
	return nil
}

func (o *memOpen) ReadAt(p []byte, at int64) (int, error) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	return bytes.NewReader(o.file.data).ReadAt(p, at)
}

func (o *memOpen) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p, o.read)
	o.read += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (o *memOpen) Size() (int64, error) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	return int64(len(o.file.data)), nil
}

func (o *memOpen) Close() error { return nil }

// files are the finished files of a job.
func (d *memDisk) files(s *Setup) map[string]string {
	out := map[string]string{}
	for name, f := range d.names {
		out[filepath.Base(name)] = string(f.data)
	}
	return out
}

// attempt is one process that runs the job on a disk, to its end or its death.
func attempt(t *testing.T, s *Setup, d *memDisk, lanes int) (complete bool, rows int64, err error) {
	t.Helper()
	s.Meter, s.Engine = &Meter{}, &fakeEngine{lanes: lanes, script: echo}
	if s.Folder, err = OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{Disk: d}); err != nil {
		return false, 0, err
	}
	defer func() { err = errors.Join(err, s.Folder.Close()) }()
	if s.Folder.Complete() {
		report, err := s.Folder.Finished(nil)
		return err == nil, report.Counts.Rows, err
	}
	report, err := Run(t.Context(), s)
	if report == nil {
		return false, 0, err
	}
	return report.Complete, report.Counts.Rows, err
}

// TestDeathAtEveryOperation lets every operation on the disk be the last one of a run, in
// every way, then the run that goes on die too, and the next one end: its files are those of
// a run that nothing has disturbed.
func TestDeathAtEveryOperation(t *testing.T) {
	s := newSetup(t, mixedInput, nil)
	closeFolder(t, s)
	whole := newMemDisk()
	if complete, _, err := attempt(t, s, whole, 1); err != nil || !complete {
		t.Fatalf("complete %v, %v", complete, err)
	}
	want := whole.files(s)
	for kind := range fault(faultKinds) {
		last := false
		for k := 1; !last; k++ {
			last = dies(t, s, want, kind, k)
			if t.Failed() {
				return
			}
			if k > 500 {
				t.Fatal("the job never ends")
			}
			if last && k < 30 {
				t.Fatalf("only %d operations were seen", k)
			}
		}
	}
}

// dies lets two runs fail and the third one end. It reports whether the first one ended
// before its operation came.
func dies(t *testing.T, s *Setup, want map[string]string, kind fault, k int) (ended bool) {
	t.Helper()
	d := newMemDisk()
	what := fmt.Sprintf("fault %d at operation %d", kind, k)
	for i, at := range []int{k, 1 + k*7%29} {
		d.arm(at, kind)
		_, rows, err := attempt(t, s, d, 1+(k+i)%4)
		fired := d.fired()
		if i == 0 && !fired {
			ended = true
		}
		if fired && err == nil || !fired && err != nil {
			t.Errorf("%s, run %d: fired %v, error %v", what, i, fired, err)
		}
		d.reboot()
		keptRows(t, what, s, d, kind, rows)
	}
	complete, _, err := attempt(t, s, d, 2)
	if err != nil || !complete {
		t.Errorf("%s: complete %v, %v", what, complete, err)
		return ended
	}
	got := d.files(s)
	same(t, want, got)
	if len(got) != len(want) {
		t.Errorf("%s: files left behind: %d, want %d", what, len(got), len(want))
	}
	return ended
}

// keptRows holds that no row is lost that a run has counted, unless the machine died.
func keptRows(t *testing.T, what string, s *Setup, d *memDisk, kind fault, rows int64) {
	t.Helper()
	if kind.power() {
		return
	}
	f, err := OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{Disk: d})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer f.Close()
	if n, _ := f.Done(); !f.Complete() && n < rows {
		t.Errorf("%s: %d rows are there, the run had counted %d", what, n, rows)
	}
}
