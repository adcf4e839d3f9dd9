package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"tfbatch/jobs"
	"tfbatch/stages"
)

// The ways to verify.
const (
	modeHashes = "hashes"
	modeReplay = "replay"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR|ROWS.jsonl",
		Short: "check a finished job's files, or make its replies once more",
		Long: `verify takes the folder of a finished job. Mode hashes holds its files against the manifest
and computes counts and the job root from the rows again; it needs no model. Mode replay does
that, then makes the replies once more, one at a time and without guesses, and names the first
row and token that differ. It looks for the model and the input where the run had them.

Exit codes: 0 equal, 4 a reply differs, 5 not comparable: a file is missing or was changed.`,
		Example: `  tfbatch verify out/demo
  tfbatch verify out/demo --mode replay --sample 5%
  tfbatch verify out/qa/rows.jsonl --mode replay --sample 20 --model ./LFM2-1.2B --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("verify takes one folder or rows.jsonl; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.verify(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.String("mode", modeHashes, "hashes or replay")
	f.String("sample", "all", "rows to replay: all, a share such as 1%, or a number")
	f.String("model", "", "where the model is now: a folder or builtin:NAME")
	f.String("input", "", "where the input is now")
	f.String("template", "", "where the job's own chat template is now")
	f.String("device", "", "auto, cpu, cuda or metal")
	f.Int("threads", 0, "threads of the CPU")
	f.String("isa", "auto", "instruction set of the CPU: auto, avx512, avx2, neon or portable")
	return c
}

// verifySettings are the flags of verify.
type verifySettings struct {
	mode, sample, model, input, template string
	receipt                              string // of an earlier verify
}

// verifyReport is what verify found.
type verifyReport struct {
	Dir     string           `json:"dir"`
	Mode    string           `json:"mode"`
	Verdict string           `json:"verdict"` // equal, different or not comparable
	Reason  string           `json:"reason,omitempty"`
	Hashes  *stages.Hashes   `json:"hashes,omitempty"`
	Replay  *stages.Replayed `json:"replay,omitempty"`
	Device  string           `json:"device,omitempty"`
}

func (a *app) verify(ctx context.Context, path string) error {
	v := &a.set.verify
	sample, err := stages.ParseSample(v.sample)
	if err != nil {
		return usage(fmt.Errorf("--sample: %w", err))
	}
	if v.mode != modeHashes && v.mode != modeReplay {
		return usage(fmt.Errorf("--mode: is %q, want hashes or replay", v.mode))
	}
	report := &verifyReport{Dir: path, Mode: v.mode}
	err = verdict(report, a.compare(ctx, path, sample, report))
	if a.set.json {
		if jsonErr := writeJSON(a.stdout, report); err == nil {
			err = jsonErr
		}
	} else if report.Verdict != "" {
		report.print(a.stdout)
	}
	return err
}

// verdict puts what a comparison came to into the report, and into an exit code.
func verdict(r *verifyReport, err error) error {
	var d *stages.Difference
	switch {
	case err == nil:
		r.Verdict = "equal"
		return nil
	case errors.As(err, &d):
		r.Verdict, r.Reason = "different", err.Error()
		return &coded{exitDiffers, fmt.Errorf("%s: %w", r.Dir, err)}
	case errors.Is(err, stages.ErrRecord):
		r.Verdict, r.Reason = "not comparable", err.Error()
		return &coded{exitIncomparable, fmt.Errorf("%s: %w", r.Dir, err)}
	}
	return err
}

func (a *app) compare(ctx context.Context, path string, sample stages.Sample, report *verifyReport) error {
	rec, err := stages.OpenRecord(path)
	if err != nil {
		return err
	}
	if report.Hashes, err = rec.CheckHashes(ctx); err != nil {
		return err
	}
	if problems := report.Hashes.Problems; len(problems) > 0 {
		return fmt.Errorf("%w: problem 1 of %d: %s", stages.ErrRecord, len(problems), problems[0])
	}
	if a.set.verify.mode == modeHashes {
		return nil
	}
	return a.replay(ctx, rec, sample, report)
}

// replay opens what made the record and makes the sample again.
func (a *app) replay(ctx context.Context, rec *stages.Record, sample stages.Sample, report *verifyReport) error {
	p, err := a.prepareReplay(rec)
	if err != nil {
		return err
	}
	m, err := a.load(ctx, p, nil)
	if err != nil {
		return err
	}
	defer m.device.Close()
	files := p.snap.files
	files.Shards = m.shards
	if err := rec.SameModel(files); err != nil {
		return err
	}
	eng, err := m.engine(alone(p.size.engine))
	if err != nil {
		return err
	}
	report.Device = m.device.Name()
	replay := &stages.Replay{
		Record: rec, Hashes: report.Hashes, Sample: sample,
		Model: p.snap.stages, Encoder: p.encoder, Engine: eng, Margin: m.margin(p.size.engine),
	}
	report.Replay, err = replay.Run(ctx)
	return err
}

// prepareReplay finds the job's files, as they were or as flags say, and reads no weight.
func (a *app) prepareReplay(rec *stages.Record) (*prepared, error) {
	v := &a.set.verify
	for _, o := range []struct {
		path *jobs.Path
		file string
	}{{&rec.Job.Model.Path, v.model}, {&rec.Job.Input.Path, v.input}, {&rec.Job.Prompt.Template, v.template}} {
		if o.file != "" {
			o.path.File = o.file
		}
	}
	if rec.Job.Input.Path.File == jobs.StdinPath {
		return nil, usage(errors.New("the job read its rows from standard input; name a file that holds them with --input"))
	}
	job := rec.Job
	job.Model.Path.Name = job.Model.Path.File // where to find it, whatever the job called it
	job.Run.Lanes, job.Drafter = 1, jobs.Drafter{}
	a.set.apply(&job)
	p, err := a.prepareJob(job)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w; say with --model, --input or --template where it is now", stages.ErrRecord, err)
	}
	if err != nil {
		return nil, refused(err)
	}
	if err := rec.SameModel(p.snap.files); err != nil {
		return nil, err
	}
	if id := arithmeticOf(&p.job); id != rec.Arithmetic() {
		return nil, fmt.Errorf("%w: the arithmetic was %q, the job's is %q", stages.ErrRecord, rec.Arithmetic(), id)
	}
	return p, nil
}

func (r *verifyReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", r.Dir, r.Verdict)
	if h := r.Hashes; h != nil {
		fmt.Fprintf(w, "  hashes   %d rows, %d replies, %d problems\n", h.Rows, h.Replies, len(h.Problems))
		for _, p := range h.Problems {
			fmt.Fprintf(w, "           %s\n", p)
		}
		fmt.Fprintf(w, "  job root %v\n", h.Root)
	}
	if p := r.Replay; p != nil {
		fmt.Fprintf(w, "  replay   %d rows, %d replies, %d tokens, one at a time without guesses on %s\n", p.Rows, p.Replies, p.Tokens, r.Device)
	}
}
