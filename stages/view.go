package stages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tfbatch/internal/journal"
	"tfbatch/internal/regular"
	"tfbatch/jobs"
)

// View is a job's folder as who only looks sees it, whether a run is at it, was broken off or has finished. It takes
// no lock and changes nothing.
type View struct {
	Dir    string
	Record *Record  // of a complete job, or nil
	Job    jobs.Job // its paths as the job file has them; nothing of a folder that is empty
	Model  ModelFiles
	Counts Counts // of the rows that are done
	Runs   []ViewRun

	Shard      Shard // of a shard that is done, or of none
	Audited    int64 // replies that an audit has found equal
	Arithmetic string
	Run        RunFacts // of a job or shard that is done

	// Touched is when a row was last written, of a job that is not complete.
	Touched time.Time

	places []donePlace // of a journal
	log    *journal.Log
	file   *os.File
}

// ViewRun is one of the runs that a job took.
type ViewRun struct {
	Started time.Time
	Version string
}

// ErrNoFolder is what a file in a folder's place is.
var ErrNoFolder = errors.New("is not a directory")

// OpenView looks at a job's folder. A folder without manifest and journal is empty. The caller closes the view.
func OpenView(dir string) (*View, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: %w", dir, ErrNoFolder)
	}
	if err != nil {
		return nil, err
	}
	for range 2 { // a run may put the manifest in the journal's place between the two looks
		for _, open := range []func(string) (*View, error){viewRecord, viewJournal} {
			v, err := open(dir)
			if !errors.Is(err, fs.ErrNotExist) {
				return v, err
			}
		}
	}
	return &View{Dir: dir, Counts: newCounts()}, nil
}

func viewRecord(dir string) (*View, error) {
	r, err := OpenRecord(dir)
	if err != nil {
		return nil, err
	}
	m := &r.manifest
	v := &View{Dir: dir, Record: r, Job: r.Job, Model: m.Model, Counts: m.Counts, Arithmetic: m.Arithmetic,
		Audited: m.Volatile.Audited, Run: m.Volatile.RunFacts}
	v.runs(m.Volatile.Runs)
	return v, nil
}

func viewJournal(dir string) (*View, error) {
	path := filepath.Join(dir, journalName)
	file, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	v := &View{Dir: dir, file: file}
	if err := v.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrRecord, path, err), v.Close())
	}
	return v, nil
}

// scan reads the journal as far as it goes now. Its last record may be on the way to the file still.
func (v *View) scan() error {
	info, err := v.file.Stat()
	if err != nil {
		return err
	}
	v.Touched = info.ModTime()
	s, err := scanJournal(lookedAt{v.file}, info.Size())
	if err != nil {
		return err
	}
	var canonical bytes.Buffer
	if err := json.Compact(&canonical, s.id.Job); err != nil {
		return err
	}
	if v.Job, err = jobs.Restore(canonical.Bytes()); err != nil {
		return err
	}
	v.Model, v.Arithmetic, v.Counts, v.Audited = s.id.Model, s.id.Arithmetic, s.done.counts, int64(len(s.done.audited))
	v.places, v.log = s.done.places, s.done.log
	if end := s.done.end; end != nil {
		v.Shard, v.Audited, v.Run = end.Shard, end.Audited, end.Run
	}
	v.runs(s.done.sessions)
	return nil
}

func (v *View) runs(list []session) {
	for _, s := range list {
		v.Runs = append(v.Runs, ViewRun(s))
	}
}

// lookedAt is a journal's file that is only read: what is torn at its end stays.
type lookedAt struct{ io.ReaderAt }

func (lookedAt) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (lookedAt) Truncate(int64) error      { return nil }
func (lookedAt) Sync() error               { return nil }

// Close gives the files back.
func (v *View) Close() error {
	if v.file == nil {
		return nil
	}
	return v.file.Close()
}

// Order is an order of rows.
type Order string

// The orders. Rows of a complete job have the first one only: when they ended is not kept.
const (
	InputOrder Order = "input"
	EndedOrder Order = "ended"
)

// Lines shows the lines of the rows that are done, as rows.jsonl has them or will have them. A line is valid during
// the call only.
func (v *View) Lines(o Order, each func(line []byte) error) error {
	if v.Record != nil {
		return v.Record.lines(each)
	}
	var places []journal.Place
	for _, p := range v.places {
		if p.Bytes > 0 {
			places = append(places, p.Place)
		}
	}
	if o == EndedOrder {
		slices.SortFunc(places, func(a, b journal.Place) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	var buf []byte
	for _, p := range places {
		payload, err := v.log.Read(p, &buf)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrRecord, filepath.Join(v.Dir, journalName), err)
		}
		_, line, err := parseFacts(payload)
		if err != nil {
			return fmt.Errorf("%w: %s: record at byte %d: %w", ErrRecord, filepath.Join(v.Dir, journalName), p.Offset, err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// lines shows rows.jsonl line by line.
func (r *Record) lines(each func(line []byte) error) error {
	in, err := r.rows()
	if err != nil {
		return err
	}
	defer in.close()
	for {
		l, err := in.in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(append(l.data, '\n')); err != nil {
			return err
		}
	}
}

// ParseLine is the row of a line that Lines has shown, without its prompt.
func ParseLine(line []byte) (*Pair, error) {
	r := &recordedRow{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("%w: a row: %w", ErrRecord, err)
	}
	return r.pair(), nil
}

// Pick is a number that an id always has: those with the lowest are a fair sample.
func Pick(id string) uint64 { return draw(id) }
