package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tfbatch/jobs"
)

// shardFolder is a finished shard, held against other runs.
type shardFolder struct {
	*Folder
	end *shardEnd
}

// Merge makes the folder of a whole job below out from the folders of all its shards, in any order: the files are
// those of one run without shards. It reads no input and no model. [ErrRecord] is in the error of shards that do not
// make a whole.
func Merge(dirs []string, out, version string) (_ *Report, err error) {
	started := time.Now()
	shards, err := openShards(dirs)
	defer func() {
		for _, s := range shards {
			err = errors.Join(err, s.Close())
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := together(shards); err != nil {
		return nil, err
	}
	first := shards[0]
	job, err := first.restored(out)
	if err != nil {
		return nil, err
	}
	target, err := newTarget(job)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return target.merge(shards, &Provenance{version, first.was.Arithmetic, first.was.Model, first.end.Run}, started)
}

func openShards(dirs []string) (list []*shardFolder, err error) {
	for _, dir := range dirs {
		s := &shardFolder{Folder: &Folder{disk: osDisk{}, dir: dir}}
		if s.unlock, err = s.disk.Lock(s.path(lockName)); err != nil {
			return list, fmt.Errorf("%w: %w", ErrRecord, err)
		}
		list = append(list, s)
		err = s.openJournal()
		if err == nil && s.done == nil {
			err = errors.New("there is no " + journalName)
		}
		if err == nil && s.done.end == nil {
			err = errors.New("is no shard that was finished; run it again to go on")
		}
		if err != nil {
			return list, fmt.Errorf("%w: %s: %w", ErrRecord, dir, err)
		}
		s.end = s.done.end
	}
	return list, nil
}

// together checks that the shards are of one job and make it whole.
func together(shards []*shardFolder) error {
	first := shards[0]
	have := map[int]string{}
	for _, s := range shards {
		switch other, twice := have[s.end.Shard.Index]; {
		case s.end.Shard.Of != first.end.Shard.Of:
			return fmt.Errorf("%w: %s is shard %v, %s is %v", ErrRecord, first.dir, first.end.Shard, s.dir, s.end.Shard)
		case twice:
			return fmt.Errorf("%w: %s and %s are both shard %v", ErrRecord, other, s.dir, s.end.Shard)
		}
		have[s.end.Shard.Index] = s.dir
		was, is := *first.was, *s.was
		was.Input, is.Input = first.end.Input, s.end.Input
		if list := was.differences(is); len(list) > 0 {
			return fmt.Errorf("%w: %s and %s are of other jobs: %s", ErrRecord, first.dir, s.dir, strings.Join(list, "; "))
		}
	}
	var missing []string
	for i := 1; i <= first.end.Shard.Of; i++ {
		if _, ok := have[i]; !ok {
			missing = append(missing, fmt.Sprint(i))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: of %d shards there is no %s", ErrRecord, first.end.Shard.Of, strings.Join(missing, ", "))
	}
	return nil
}

// restored is the job of a shard, to be written below out.
func (s *shardFolder) restored(out string) (*jobs.Job, error) {
	var canonical bytes.Buffer
	if err := json.Compact(&canonical, s.was.Job); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRecord, s.dir, err)
	}
	job, err := jobs.Restore(canonical.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRecord, s.dir, err)
	}
	at := &Record{Dir: s.dir}
	job.Model.Path.File, job.Input.Path.File = at.resolve(s.end.Files.Model), at.resolve(s.end.Files.Input)
	job.Prompt.Template.File = at.resolve(s.end.Files.Template)
	job.Output.Dir = jobs.Path{Name: out, File: out}
	return &job, nil
}

// ErrTargetExists refuses to merge into a folder that holds a job.
var ErrTargetExists = errors.New("there already; choose another --out, or remove it")

// newTarget takes a folder that holds nothing yet.
func newTarget(job *jobs.Job) (*Folder, error) {
	f := &Folder{disk: osDisk{}, dir: OutputDir(job), job: job}
	if err := f.disk.MkdirAll(f.dir); err != nil {
		return nil, err
	}
	var err error
	if f.unlock, err = f.disk.Lock(f.path(lockName)); err != nil {
		return nil, err
	}
	for _, name := range []string{manifestName, journalName, rowsName, errorsName} {
		there, err := exists(f.disk, f.path(name))
		if there {
			err = errors.Join(err, fmt.Errorf("%s: %w", f.path(name), ErrTargetExists))
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	f.done = newDoneRows()
	return f, nil
}

// merge writes the final files from the journals of the shards.
func (f *Folder) merge(shards []*shardFolder, p *Provenance, started time.Time) (*Report, error) {
	end := shards[0].end
	for _, s := range shards {
		f.done.sessions = append(f.done.sessions, s.done.sessions...)
	}
	slices.SortFunc(f.done.sessions, func(a, b session) int { return a.Started.Compare(b.Started) })
	made, err := f.build(end.Rows, func(index int64) (facts, []byte, error) {
		for _, s := range shards {
			if index < int64(len(s.done.places)) && s.done.places[index].Bytes > 0 {
				return s.done.read(index)
			}
		}
		return facts{}, nil, fmt.Errorf("%w: no shard has it", ErrRecord)
	})
	if err != nil {
		return nil, err
	}
	report := &Report{Counts: made.counts, Root: made.root.Sum(), Dir: f.dir, Complete: true}
	report.Counts.add(&Counts{Lines: end.Lines, Blank: end.Blank, Skipped: end.Skipped})
	for _, s := range shards {
		report.Audited += s.end.Audited
	}
	setup := &Setup{Job: *f.job, Folder: f, Provenance: *p}
	return report, f.publish(newManifest(setup, report, made, end.Input, started), true)
}
