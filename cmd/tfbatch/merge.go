package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"tfbatch/internal/metrics"
	"tfbatch/stages"
)

func (a *app) mergeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "merge SHARD... --out DIR",
		Short: "make one job's files of the folders of its shards",
		Long: `merge takes the folders that run --shard i/n has left, all n of them in any order, and writes DIR/JOB as one run
without shards would have: rows.jsonl, errors.jsonl and manifest.json are the same bytes, but for the volatile part
of the manifest. It needs no model and no input. Shards may come from different machines and devices.

Exit codes: 0 done, 5 the shards do not make a whole, 8 DIR/JOB holds files already.`,
		Example: `  tfbatch run jobs.yaml --shard 1/2 &
  tfbatch run jobs.yaml --shard 2/2 && wait
  tfbatch merge out/qa.shard-*-of-2 --out out`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("merge takes the folders of all shards of one job")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.merge(args) },
	}
	c.Flags().String("out", "", "folder for the job's folder")
	return c
}

func (a *app) merge(dirs []string) error {
	if a.set.out == "" {
		return usage(errors.New("--out is missing: the folder for the job's folder"))
	}
	report, err := stages.Merge(dirs, a.set.out, version())
	switch {
	case errors.Is(err, stages.ErrRecord):
		return &coded{exitIncomparable, err}
	case errors.Is(err, stages.ErrTargetExists):
		return refused(err)
	case err != nil:
		return err
	}
	a.mergeMeasurements(dirs, report.Dir)
	if a.set.json {
		return writeJSON(a.stdout, map[string]any{"dir": report.Dir, "counts": report.Counts, "job_root": report.Root.String()})
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d rows, %d errors of %d shards\njob root %s\n", report.Dir, report.Counts.Rows, report.Counts.Errors, len(dirs), report.Root)
	return err
}

// mergeMeasurements puts what the shards' runs measured of themselves beside each other. A job is whole without.
func (a *app) mergeMeasurements(dirs []string, dir string) {
	var parts []*metrics.Series
	for _, d := range dirs {
		s, missing := measurements(d)
		if s == nil {
			a.log.Info("no measurements of a shard", "dir", d, "why", missing)
			continue
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return
	}
	if err := metrics.Merge(filepath.Join(dir, stages.MetricsName), parts); err != nil {
		a.log.Warn("no measurements are kept", "dir", dir, "error", err)
	}
}
