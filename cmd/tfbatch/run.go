package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tfbatch/internal/engine"
	"tfbatch/jobs"
	"tfbatch/stages"
)

// arithmetic names the order of operations that replies depend on, unless a job asks for another.
const arithmetic = string(jobs.FMA)

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run JOBS.yaml",
		Short: "run the jobs of a file",
		Long: `run takes every row of each job's input through its model and writes, per job,
OUT/JOB/rows.jsonl, errors.jsonl and manifest.json. A file under its final name is complete.
The job file may be - for standard input. What the run measures of itself is in OUT/JOB/metrics.jsonl,
which report draws.

Until a job is complete its rows are in OUT/JOB/journal.log. Whatever ended a run, the same
command goes on where it was, and the files come out as if nothing had happened; lanes, batch,
threads, drafter and device may be others. A job that is complete is left alone.

Exit codes: 0 done, 1 a device or a disk failed, 2 flags or job file, 3 too many error rows,
4 an audit found a reply that plain decoding does not give, 7 the folder was begun with
another model, tokenizer, template, job, input or arithmetic, 8 refused before the start,
129, 130 and 143 for SIGHUP, SIGINT and SIGTERM. The first signal lets running rows finish,
the second drops them; SIGUSR1 prints how far the run is.`,
		Example: `  tfbatch run jobs/demo.yaml
  tfbatch run jobs/demo.yaml --limit 10 --out /tmp/try
  tfbatch run jobs.yaml --only qa,chat --lanes 32 --json > report.json
  tfbatch run jobs.yaml --retry-errors
  tfbatch run jobs.yaml --metrics-addr 9464   # http://127.0.0.1:9464/metrics`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.runJobs(c.Context(), args[0]) },
	}
	f := c.Flags()
	addJobFlags(c)
	f.String("out", "", "folder for the jobs' folders, instead of output.dir")
	f.Bool("overwrite", false, "remove the files of an earlier run and begin anew")
	f.Bool("retry-errors", false, "make the rows again that failed")
	f.String("shard", "", "run one part of the rows, as 2/4; merge makes one job of all parts")
	f.BoolP("quiet", "q", false, "no progress and no summary")
	f.String("progress", progressAuto, "auto (a bar on a terminal, else none), plain (a line every 5 s) or none")
	f.String("metrics-addr", "", "show measurements to Prometheus on this port of 127.0.0.1, or on an address that is written out")
	f.Duration("grace", 30*time.Second, "how long running rows may go on after the first interrupt")
	return c
}

// addJobFlags adds what run, plan and bench have in common.
func addJobFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSlice("only", nil, "names of the jobs to take, in this order")
	f.Int64("limit", 0, "rows to take of each job")
	f.String("device", "", "auto, cpu, cuda or metal")
	f.Int("lanes", 0, "rows that run at once")
	f.Int("chunk", 0, "prompt tokens in one forward")
	f.Int("threads", 0, "threads of the CPU")
	f.String("draft", "", "tokens to guess for a row at once: auto (as many as pay), off or fixed:N")
	f.String("isa", "auto", "instruction set of the CPU: auto, avx512, avx2, neon or portable")
}

// runJobs runs the jobs one after the other; only one model is in memory at a time.
func (a *app) runJobs(ctx context.Context, path string) error {
	list, err := a.prepare(path)
	if err != nil {
		return err
	}
	if a.exporter, err = a.serveMetrics(); err != nil {
		return err
	}
	defer a.exporter.close()
	folders, err := a.openFolders(list)
	if err != nil {
		return err
	}
	defer closeFolders(folders)
	ctx, stop := watchSignals(ctx, a.set.grace, a.stderr)
	defer stop.close()
	reports, err := a.runEach(ctx, stop, list, folders)
	if a.set.json {
		if jsonErr := writeJSON(a.stdout, reports); err == nil {
			err = jsonErr
		}
	}
	if code := stop.code(); code != 0 && !complete(reports, len(list)) {
		return &coded{code, withoutCancel(err)}
	}
	return err
}

// complete reports whether every job was finished, whatever signal came at the end.
func complete(reports []*jobReport, jobs int) bool {
	return len(reports) == jobs && !slices.ContainsFunc(reports, func(r *jobReport) bool { return !r.Complete })
}

// withoutCancel keeps the errors that a stop did not cause.
func withoutCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a *app) runEach(ctx context.Context, stop *stopper, list []*prepared, folders []*stages.Folder) ([]*jobReport, error) {
	reports := []*jobReport{}
	var late error
	for i, p := range list {
		if stop.admit.Err() != nil {
			break
		}
		report, err := a.runOrReport(ctx, stop, p, folders[i])
		if report != nil {
			reports = append(reports, report)
			a.summary(report)
		}
		if err != nil {
			return reports, classed(fmt.Errorf("job %s: %w", p.job.Name, err))
		}
		see := filepath.Join(report.Dir, "errors.jsonl")
		if a.set.shard.Of > 0 {
			see = seeMerged
		}
		late = tooMany(late, &p.job, report, see)
	}
	return reports, late
}

// seeMerged is where the error rows of shards can be read.
const seeMerged = "errors.jsonl once the shards are merged"

// tooMany adds to the errors that come late that a job has more error rows than it allows.
func tooMany(late error, job *jobs.Job, report *jobReport, see string) error {
	allowed := job.Limits.MaxRowErrors.Of(report.Counts.Rows)
	if !report.Complete || report.Counts.Errors <= allowed {
		return late
	}
	return &coded{exitRowError, errors.Join(late, fmt.Errorf("job %s: %d of %d rows failed, %d are allowed; see %s",
		job.Name, report.Counts.Errors, report.Counts.Rows, allowed, see))}
}

// jobReport is what a job did, for people and as JSON.
type jobReport struct {
	Job      string        `json:"job"`
	Complete bool          `json:"complete"`
	Earlier  int64         `json:"earlier_rows"` // done by earlier runs
	Dir      string        `json:"dir"`
	Counts   stages.Counts `json:"counts"`
	Root     string        `json:"job_root,omitempty"`
	Seconds  float64       `json:"seconds"`
	PerSec   float64       `json:"completion_tokens_per_second"`
	Device   string        `json:"device"`
	Lanes    int           `json:"lanes"`
	Drafted  int64         `json:"drafted_tokens"`
	Accepted int64         `json:"accepted_tokens"`
	Audited  int64         `json:"audited_replies"`
	Tokens   int64         `json:"-"` // drawn by this run
}

func (a *app) runJob(ctx context.Context, stop *stopper, p *prepared, folder *stages.Folder) (*jobReport, error) {
	r, err := a.ready(ctx, p)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.run(ctx, stop, folder, a.set.shard)
}

// runner is a prepared job with its weights on a device. It runs the job, or one shard after the other.
type runner struct {
	*app
	job   *prepared
	model *loaded
	eng   *engine.Engine
}

// ready loads the model of a job. The caller closes the runner.
func (a *app) ready(ctx context.Context, p *prepared) (*runner, error) {
	show := a.newProgress(p.job.Name)
	defer show.close()
	loading := show.loading(p.snap.plan.Tensors.Bytes() + p.drafter.bytes())
	model, err := a.load(ctx, p, loading)
	if err != nil {
		return nil, err
	}
	eng, err := model.draftedEngine(ctx, p.drafter, p.size.engine, loading)
	if err != nil {
		return nil, errors.Join(err, model.device.Close())
	}
	a.log.Info("model loaded", "job", p.job.Name, "device", model.device.Name(), "lanes", p.size.engine.Lanes, "pages", p.size.engine.Pages,
		"draft", p.job.Drafter.Guesses, "copy", p.job.Drafter.Copy, "drafter", p.job.Drafter.Path.Name, "drafter_bits", p.job.Drafter.Bits)
	return &runner{a, p, model, eng}, nil
}

func (r *runner) close() { _ = r.model.device.Close() } // nothing is written by it

// run takes the rows of a folder through the model.
func (r *runner) run(ctx context.Context, stop *stopper, folder *stages.Folder, shard stages.Shard) (*jobReport, error) {
	a, p, model, eng := r.app, r.job, r.model, r.eng
	show := a.newProgress(p.job.Name)
	defer show.close()
	setup := a.setup(p, model, eng, stop.admit)
	setup.Folder = folder
	earlier := a.resuming(p, folder)
	var err error
	if setup.Audit, err = p.audit(model); err != nil {
		return nil, err
	}
	now, started := &live{job: p.job.Name, lanes: p.size.engine.Lanes, meter: setup.Meter}, time.Now()
	now.watch(eng, setup.Provenance.Run.Drafting)
	a.exporter.add(now)
	show.running(setup.Meter, now.tokens)
	stop.status(func() string {
		tokens, active := now.tokens()
		return p.job.Name + ": " + statusText(setup.Meter.Read(), tokens, active, time.Since(started))
	})
	defer stop.status(nil)
	recorded := a.record(folder, now)
	report, err := stages.Run(ctx, setup)
	recorded()
	seconds := time.Since(started).Seconds()
	show.close()
	if report == nil {
		return nil, err
	}
	out := &jobReport{
		Job: p.job.Name, Complete: report.Complete, Earlier: earlier, Dir: report.Dir, Counts: report.Counts,
		Seconds: seconds, PerSec: float64(report.Tokens) / seconds, Tokens: report.Tokens,
		Device: model.device.Name(), Lanes: p.size.engine.Lanes,
		Drafted: setup.Provenance.Run.Drafting.Drafted, Accepted: setup.Provenance.Run.Drafting.Accepted,
		Audited: report.Audited,
	}
	if report.Complete && shard.Of == 0 {
		out.Root = report.Root.String()
	}
	return out, err
}

func (a *app) setup(p *prepared, m *loaded, eng *engine.Engine, admit context.Context) *stages.Setup {
	files := p.snap.files
	files.Shards = m.shards
	return &stages.Setup{
		Job: p.job, Model: p.snap.stages, Encoder: p.encoder, Engine: eng,
		Stdin: a.stdin,
		Admit: admit, Meter: &stages.Meter{},
		Provenance: stages.Provenance{
			Version: version(), Arithmetic: arithmeticOf(&p.job), Model: files,
			Run: stages.RunFacts{
				Device: m.device.Name(), Lanes: p.size.engine.Lanes, Chunk: p.size.engine.Chunk, Drafting: p.drafting(),
			},
		},
	}
}

// arithmeticOf is the id of the arithmetic that a job's replies depend on: internal/backend/ARITHMETIC.md, I8.md.
func arithmeticOf(j *jobs.Job) string {
	if j.KV == "f32" {
		return string(j.Arithmetic) + "+kv32"
	}
	return string(j.Arithmetic)
}

// summary is the end of a job for people.
func (a *app) summary(r *jobReport) {
	if a.set.quiet || r.Device == "" { // complete before: that was said
		return
	}
	state := "not complete; what is done is in " + filepath.Join(r.Dir, "journal.log") + ", run again to go on"
	switch {
	case r.Complete && a.set.shard.Of > 0:
		state = fmt.Sprintf("shard %v is done: %s; tfbatch merge makes the job of all of them", a.set.shard, r.Dir)
	case r.Complete:
		state = filepath.Join(r.Dir, "rows.jsonl")
	}
	fmt.Fprintf(a.stderr, "%s: %d rows, %d errors, %d tokens in %.1f s (%.0f tokens/s, %s, %d lanes)\n",
		r.Job, r.Counts.Rows, r.Counts.Errors, r.Tokens, r.Seconds, r.PerSec, r.Device, r.Lanes)
	if r.Drafted > 0 {
		fmt.Fprintf(a.stderr, "%d of %d guessed tokens accepted\n", r.Accepted, r.Drafted)
	}
	if r.Audited > 0 {
		fmt.Fprintf(a.stderr, "%d replies made once more, plainly: equal\n", r.Audited)
	}
	fmt.Fprintln(a.stderr, state)
	if r.Root != "" {
		fmt.Fprintf(a.stderr, "job root %s\n", r.Root)
	}
}

func writeJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
