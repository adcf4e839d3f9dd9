package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"tfbatch/internal/journal"
	"tfbatch/stages"
)

// openFolders takes the folder of every job before the first one runs, so that a job that
// cannot go on, or that another run is at, is said at once. The caller closes them.
func (a *app) openFolders(list []*prepared) ([]*stages.Folder, error) {
	var out []*stages.Folder
	for _, p := range list {
		f, err := stages.OpenFolder(&p.job, &stages.Provenance{Arithmetic: arithmeticOf(&p.job), Model: p.snap.files}, a.stdin,
			stages.FolderOptions{Overwrite: a.set.overwrite, RetryErrors: a.set.retryErrors, Shard: a.set.shard})
		if err != nil {
			closeFolders(out)
			return nil, refused(classed(fmt.Errorf("job %s: %w", p.job.Name, err)))
		}
		out = append(out, f)
	}
	return out, nil
}

// closeFolders gives them back. Their files were synced or seen to fail before.
func closeFolders(list []*stages.Folder) {
	for _, f := range list {
		_ = f.Close()
	}
}

// classed gives an error that names a difference its exit code. A code from further down stays, and so do the words
// that were put around it.
func classed(err error) error {
	var d *stages.Difference
	var c *stages.Changed
	var inner *coded
	switch {
	case errors.As(err, &inner):
		return &coded{inner.code, err}
	case errors.As(err, &d):
		return &coded{exitDiffers, err}
	case errors.As(err, &c):
		return &coded{exitChanged, err}
	case errors.Is(err, journal.ErrLocked):
		return &coded{exitRefused, err}
	}
	return err
}

// runOrReport runs a job, unless an earlier run has finished it with the same weights.
func (a *app) runOrReport(ctx context.Context, stop *stopper, p *prepared, f *stages.Folder) (*jobReport, error) {
	if !f.Complete() {
		return a.runJob(ctx, stop, p, f)
	}
	show := a.newProgress(p.job.Name)
	defer show.close()
	digests, err := p.snap.digests(ctx, show.loading)
	if err != nil {
		return nil, err
	}
	report, err := f.Finished(digests)
	show.close()
	if err != nil {
		return nil, err
	}
	if !a.set.quiet {
		fmt.Fprintf(a.stderr, "%s: complete before, %s rows, %s errors; nothing to do\n%s\njob root %v\n", p.job.Name,
			thousands(report.Counts.Rows), thousands(report.Counts.Errors), filepath.Join(report.Dir, "rows.jsonl"), report.Root)
	}
	return &jobReport{
		Job: p.job.Name, Complete: true, Earlier: report.Counts.Rows, Dir: report.Dir, Counts: report.Counts, Root: report.Root.String(),
	}, nil
}

// resuming says what is done already, and how many rows that is.
func (a *app) resuming(p *prepared, f *stages.Folder) int64 {
	done, total := f.Done()
	if done == 0 || a.set.quiet {
		return done
	}
	of := ""
	if total > 0 {
		of = " of " + thousands(total)
	}
	fmt.Fprintf(a.stderr, "%s: resuming: %s%s rows done\n", p.job.Name, thousands(done), of)
	return done
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
