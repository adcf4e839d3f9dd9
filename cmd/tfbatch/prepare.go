package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/internal/engine"
	"tfbatch/internal/model"
	"tfbatch/internal/regular"
	"tfbatch/jobs"
	"tfbatch/stages"
)

// prepared is a job that nothing is known to stand against: its model's headers, tokenizer
// and template were read, its memory was counted. No weight was.
type prepared struct {
	job     jobs.Job
	snap    *snapshot
	encoder *stages.Encoder
	drafter *drafterPlan // nil: none
	size    size
	device  string // as the device names itself
}

// prepare reads a job file and checks every job of it before the first one runs.
func (a *app) prepare(path string) ([]*prepared, error) {
	list, err := a.readJobs(path)
	if err != nil {
		return nil, usage(err)
	}
	out := make([]*prepared, len(list))
	for i, job := range list {
		if out[i], err = a.prepareJob(job); err != nil {
			return nil, refused(classed(fmt.Errorf("job %s: %w", job.Name, err)))
		}
	}
	return out, nil
}

// vanished says of an input that is not there whether a run of the job had it.
func vanished(job *jobs.Job, err error) error {
	if state, _ := stages.State(job); state == "" || !errors.Is(err, fs.ErrNotExist) { // the input is the trouble, whatever the folder says
		return err
	}
	return &stages.Changed{Dir: stages.OutputDir(job), Differences: []string{fmt.Sprintf("input: %s -> %v", job.Input.Path.Name, err)}}
}

func (a *app) readJobs(path string) ([]jobs.Job, error) {
	source, err := a.jobFile(path)
	if err != nil {
		return nil, err
	}
	name, dir := path, filepath.Dir(path)
	if path == jobs.StdinPath {
		name, dir = "stdin", "."
	}
	list, err := jobs.Parse(name, dir, source)
	if err != nil {
		return nil, err
	}
	if list, err = a.choose(list); err != nil {
		return nil, err
	}
	stdin := 0
	for i := range list {
		a.set.apply(&list[i])
		if list[i].Input.Path.File == jobs.StdinPath {
			stdin++
		}
	}
	if stdin > 1 || stdin == 1 && path == jobs.StdinPath {
		return nil, errors.New("standard input can be read once: by the job file or by one job")
	}
	return list, nil
}

// jobFile reads no more than a job file can have, so that a wrong path cannot fill memory.
func (a *app) jobFile(path string) ([]byte, error) {
	in := a.stdin
	if path != jobs.StdinPath {
		f, err := regular.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, jobs.MaxBytes+1))
}

// choose keeps the jobs that --only names.
func (a *app) choose(list []jobs.Job) ([]jobs.Job, error) {
	if len(a.set.only) == 0 {
		return list, nil
	}
	var kept []jobs.Job
	for _, name := range a.set.only {
		i := slices.IndexFunc(list, func(j jobs.Job) bool { return j.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--only: no job %q in the file", name)
		}
		kept = append(kept, list[i])
	}
	return kept, nil
}

func (a *app) prepareJob(job jobs.Job) (*prepared, error) {
	p := &prepared{job: job}
	if job.Input.Path.File != jobs.StdinPath {
		in, err := regular.Open(job.Input.Path.File)
		if err != nil {
			return nil, vanished(&job, err)
		}
		in.Close()
	}
	dev, err := openDevice(job.Run, job.Arithmetic, a.set.isa)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	if p.snap, err = openSnapshot(&p.job); err != nil {
		return nil, fmt.Errorf("model %s: %w", job.Model.Path.Name, err)
	}
	if job.Arithmetic == jobs.I8 && !p.snap.plan.Plan.Quantized() {
		return nil, fmt.Errorf("model %s: no weight is quantized, which arithmetic %s is for; tfbatch quantize makes such a checkpoint", job.Model.Path.Name, job.Arithmetic)
	}
	if p.encoder, err = stages.NewEncoder(&p.job, &p.snap.stages, p.snap.templates); err != nil {
		return nil, err
	}
	bound, err := p.snap.plan.Bind(dev)
	if err != nil {
		return nil, err
	}
	if p.drafter, err = openDrafter(&job.Drafter, p.snap.plan.Info); err != nil {
		return nil, err
	}
	p.device = dev.Name()
	p.size, err = decide(bound, p.snap.plan.Plan.Bytes(), p.drafter, &p.job, totalMemory())
	return p, err
}

// loaded is a model on a device.
type loaded struct {
	device backend.Device
	model  model.Model
	shards []stages.FileDigest
}

// load brings the weights to the device. The caller closes it.
func (a *app) load(ctx context.Context, p *prepared, progress func(n int64)) (*loaded, error) {
	dev, err := openDevice(p.job.Run, p.job.Arithmetic, a.set.isa)
	if err != nil {
		return nil, err
	}
	m, digests, err := p.snap.plan.Load(ctx, dev, progress)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("model %s: %w", p.job.Model.Path.Name, err), dev.Close())
	}
	shards, err := shardDigests(digests)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &loaded{device: dev, model: m, shards: shards}, nil
}

func (l *loaded) engine(c engine.Config) (*engine.Engine, error) {
	e, err := engine.New(l.device, l.model, c)
	return e, uneven(err)
}
