package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tfbatch/internal/journal"
	"tfbatch/internal/queue"
	"tfbatch/jobs"
	"tfbatch/stages"
)

func (a *app) workCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "work JOBS.yaml --queue nats://HOST:4222",
		Short: "take part in jobs that many workers share",
		Long: `work takes shards of each job's rows from a NATS JetStream server, one after the other, until every shard is done by
some worker; merge then makes of them, byte for byte, what one run gives. Start as many workers as you like, on any
machines, at any time, all with the same job file: the first fills the queue. tfbatch queue is a server for those who have none.

A worker has a lease on its shard and renews it. A shard whose worker was killed is another's when the lease ends. A
shard that was done twice is no harm: its bytes are the same.

Every worker reads the model, the job file and the input from its own disk; what they are is compared, and a worker
that has others is refused. A shard's folder is OUT/JOB.shard-i-of-n. Where all workers have one OUT (a shared folder
with file locks), a shard that was broken off is gone on with; where each has its own, it is begun anew, and the
folders have to be brought to one place for merge. A worker that is started again goes on with what it has.

A server that is away is waited for, for as long as --patience; rows go on meanwhile.

Exit codes: those of run; 7 also when the queue holds a job of that name that is another; 1 when the server stayed away.`,
		Example: `  tfbatch queue --store /var/lib/tfbatch &
  tfbatch work jobs.yaml --queue nats://127.0.0.1:4222 --shards 64 --out /shared/out
  tfbatch merge /shared/out/qa.shard-*-of-64 --out /shared/out`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.work(c.Context(), args[0]) },
	}
	f := c.Flags()
	addJobFlags(c)
	f.String("queue", "", "the server: nats://host:4222 or tls://host:4222")
	f.Int("shards", 0, fmt.Sprintf("parts of a job; the first worker's count, %d if it names none", queue.DefaultShards))
	f.Duration("lease", 30*time.Second, "how long a worker may be silent before its shard is another's; the first worker's counts")
	f.Duration("patience", 10*time.Minute, "how long the server may be away")
	f.Bool("renew", false, "forget what the queue knows of the jobs and fill it anew; folders are kept")
	f.String("token", "", "what the server wants to hear; better as TFBATCH_TOKEN")
	f.String("out", "", "folder for the shards' folders, instead of output.dir")
	f.BoolP("quiet", "q", false, "no progress and no summary")
	f.String("progress", progressAuto, "auto (a bar on a terminal, else none), plain (a line every 5 s) or none")
	f.Duration("grace", 30*time.Second, "how long running rows may go on after the first interrupt")
	return c
}

// workSettings are what work and queue have of their own.
type workSettings struct {
	queue, token    string
	listen, store   string
	shards          int
	lease, patience time.Duration
	renew           bool
}

// minLease leaves time for some renewals to reach the server.
const minLease = time.Second

func (w *workSettings) take(flags *pflag.FlagSet) error {
	w.queue, _ = flags.GetString("queue") // an error is a command without the flag
	w.token, _ = flags.GetString("token")
	w.listen, _ = flags.GetString("listen")
	w.store, _ = flags.GetString("store")
	w.patience, _ = flags.GetDuration("patience")
	w.renew, _ = flags.GetBool("renew")
	if flags.Lookup("lease") == nil {
		return nil
	}
	w.lease, _ = flags.GetDuration("lease")
	w.shards, _ = flags.GetInt("shards")
	switch {
	case w.queue == "":
		return errors.New("--queue is missing: the server, as nats://127.0.0.1:4222")
	case w.lease < minLease:
		return fmt.Errorf("--lease: is %v, want at least %v", w.lease, minLease)
	case w.shards != 0:
		if _, err := stages.ParseShard(fmt.Sprintf("1/%d", w.shards)); err != nil {
			return fmt.Errorf("--shards: is %d, want 1 to %d", w.shards, stages.MaxShards)
		}
	}
	return nil
}

// work takes part in the jobs one after the other; only one model is in memory at a time.
func (a *app) work(ctx context.Context, path string) error {
	list, err := a.prepare(path)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.job.Input.Path.File == jobs.StdinPath {
			return refused(fmt.Errorf("job %s: standard input is read once, and each shard reads the input; give it a file", p.job.Name))
		}
	}
	conn, err := queue.Dial(a.set.work.queue, queue.Options{Token: a.set.work.token, Patience: a.set.work.patience, Notice: a.notice})
	if err != nil {
		return usage(err)
	}
	defer conn.Close()
	ctx, stop := watchSignals(ctx, a.set.grace, a.stderr)
	defer stop.close()
	var late error
	for _, p := range list {
		w := &worker{app: a, job: p}
		err := w.work(ctx, stop, conn)
		if code := stop.code(); code != 0 && err != nil {
			return &coded{code, withoutCancel(err)}
		}
		if err != nil {
			return classed(fmt.Errorf("job %s: %w", p.job.Name, err))
		}
		late = errors.Join(late, w.late)
	}
	return late
}

// notice tells people something on one line.
func (a *app) notice(text string) { fmt.Fprintf(a.stderr, "tfbatch: %s\n", oneLine(text)) }

// worker takes shards of one job.
type worker struct {
	*app
	job    *prepared
	runner *runner
	queue  *queue.Queue
	done   int
	late   error // shards with too many error rows
}

// work takes shards until all are done. It returns an error too when a signal came before that.
func (w *worker) work(ctx context.Context, stop *stopper, conn *queue.Conn) (err error) {
	if w.runner, err = w.ready(ctx, w.job); err != nil {
		return err
	}
	defer w.runner.close()
	if err := w.join(stop.admit, conn); err != nil {
		return err
	}
	for {
		task, err := w.queue.Next(stop.admit)
		if err != nil {
			return err
		}
		if task == nil {
			return w.summary(ctx)
		}
		if err := w.shard(ctx, stop, task); err != nil {
			return err
		}
	}
}

// join finds the queue of the job as it is with the weights that were loaded.
func (w *worker) join(ctx context.Context, conn *queue.Conn) error {
	p := &stages.Provenance{Arithmetic: arithmeticOf(&w.job.job), Model: w.job.snap.files}
	p.Model.Shards = w.runner.model.shards
	id, err := stages.Identity(&w.job.job, p)
	if err != nil {
		return err
	}
	set := &w.set.work
	w.queue, err = conn.Join(ctx, queue.Job{Name: w.job.job.Name, Identity: id, Shards: set.shards, Lease: set.lease, Renew: set.renew})
	var other *queue.Other
	switch {
	case errors.As(err, &other) && other.Was != nil:
		return &coded{exitChanged, fmt.Errorf("%w (there -> here): %s; set it back, name the job otherwise, or fill the queue anew with --renew",
			err, strings.Join(stages.Differences(other.Was, id), "; "))}
	case errors.As(err, &other):
		return &coded{exitChanged, err}
	}
	return err
}

// shard runs one shard and gives it back if it could not be done.
func (w *worker) shard(ctx context.Context, stop *stopper, task *queue.Task) error {
	shard := stages.Shard{Index: task.Shard, Of: task.Of}
	release := task.Keep()
	defer release()
	p := w.job
	folder, err := stages.OpenFolder(&p.job, &stages.Provenance{Arithmetic: arithmeticOf(&p.job), Model: p.snap.files}, nil, stages.FolderOptions{Shard: shard})
	if errors.Is(err, journal.ErrLocked) { // a worker whose lease has ended is still at it
		w.log.Info("another worker is at it", "shard", shard, "error", err)
		task.Return(w.queue.Lease() / 2)
		return nil
	}
	if err != nil {
		task.Return(0)
		return err
	}
	defer folder.Close()
	w.runner.eng.Anew()
	report, err := w.runner.run(ctx, stop, folder, shard)
	if err != nil || !report.Complete {
		task.Return(0)
		return errors.Join(err, stop.admit.Err())
	}
	w.done++
	if !w.set.quiet {
		fmt.Fprintf(w.stderr, "%s: shard %v: %d rows, %d errors, %d tokens in %.1f s\n", p.job.Name, shard, report.Counts.Rows, report.Counts.Errors, report.Tokens, report.Seconds)
	}
	w.late = tooMany(w.late, &p.job, report, seeMerged)
	return task.Done(ctx, place(report.Dir))
}

// place names a folder for people on other machines.
func place(dir string) string {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	host, err := os.Hostname()
	if err != nil {
		return dir
	}
	return host + ":" + dir
}

// summary says where the shards are.
func (w *worker) summary(ctx context.Context) error {
	places, err := w.queue.Places(ctx)
	if err != nil {
		return err
	}
	name := w.job.job.Name
	if w.set.json {
		return writeJSON(w.stdout, map[string]any{"job": name, "shards": w.queue.Shards(), "done_here": w.done, "folders": places})
	}
	if w.set.quiet {
		return nil
	}
	fmt.Fprintf(w.stderr, "%s: all %d shards are done, %d of them here; tfbatch merge makes the job of them\n", name, w.queue.Shards(), w.done)
	var parents []string
	for _, one := range places {
		parents = append(parents, oneLine(filepath.Dir(one)))
	}
	slices.Sort(parents)
	for _, one := range slices.Compact(parents) {
		fmt.Fprintln(w.stderr, filepath.Join(one, fmt.Sprintf("%s.shard-*-of-%d", name, w.queue.Shards())))
	}
	return nil
}
