package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tfbatch/internal/metrics"
	"tfbatch/internal/regular"
	"tfbatch/internal/report"
	"tfbatch/stages"
)

// reportName is where a report goes unless --out says otherwise.
const reportName = "report.html"

func (a *app) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "draw a job as one HTML page, while it runs too",
		Long: `report writes DIR/report.html: throughput, lanes and memory over time, what drafting gained, lengths, ends, errors,
some rows, what made them, and whether the files are those of the manifest. The page is one file without scripts that
loads nothing. DIR may be the folder of a job that is complete, runs, was broken off or is one shard; it is read
without its lock. Prompts are shown of complete jobs whose input is where it was.

Exit codes: 0 done, 5 written, and it says that the folder's files are damaged.`,
		Example: `  tfbatch report out/qa
  tfbatch report out/qa --out qa.html
  tfbatch report out/qa --input moved/prompts.jsonl
  tfbatch verify out/qa --mode replay --sample 1% --json > verified.json
  tfbatch report out/qa --verified verified.json`,
		Args: oneFolder,
		RunE: func(c *cobra.Command, args []string) error { return a.report(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.String("out", "", "file of the page, - for standard output (default DIR/"+reportName+")")
	f.String("input", "", "where the input is now")
	f.String("verified", "", "what verify --json wrote of this job, to be told of too")
	return c
}

func (a *app) report(ctx context.Context, dir string) error {
	v, err := stages.OpenView(dir)
	if err != nil {
		return notThere(err)
	}
	defer v.Close()
	var receipt *verifyReport
	if path := a.set.verify.receipt; path != "" {
		if receipt, err = readReceipt(path, v); err != nil {
			return usage(fmt.Errorf("--verified: %w", err))
		}
	}
	page, damage := a.page(ctx, v)
	if damage != nil && !errors.Is(damage, stages.ErrRecord) {
		return damage
	}
	if receipt != nil {
		receipt.enter(&page.Verdict)
	}
	var html bytes.Buffer
	if err := report.Write(&html, page); err != nil {
		return err
	}
	path := a.set.out
	if path == "" {
		path = filepath.Join(dir, reportName)
	}
	if err := a.putPage(path, html.Bytes()); err != nil {
		return err
	}
	if damage != nil {
		return &coded{exitIncomparable, damage}
	}
	return nil
}

// putPage writes the page, in the place of an earlier one but of no other file.
func (a *app) putPage(path string, html []byte) error {
	if path == "-" {
		_, err := a.stdout.Write(html)
		return err
	}
	if err := replaceable(path); err != nil {
		return refused(err)
	}
	if err := os.WriteFile(path+".partial", html, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".partial", path); err != nil {
		return errors.Join(err, os.Remove(path+".partial"))
	}
	_, err := fmt.Fprintln(a.stdout, path)
	return err
}

// replaceable refuses a file that is no page.
func replaceable(path string) error {
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if n > 0 && !report.IsPage(head[:n]) {
		return fmt.Errorf("%s: there, and no report; choose another --out", path)
	}
	return nil
}

// page is all that there is to say of a job. The error is of files that are damaged, which the page says too.
func (a *app) page(ctx context.Context, v *stages.View) (*report.Page, error) {
	p := &report.Page{Name: v.Job.Name, Made: time.Now(), Version: version()}
	if p.Name == "" {
		p.Name = filepath.Base(filepath.Clean(v.Dir))
	}
	p.State, p.Mood = state(v)
	p.Series, p.Missing = measurements(v.Dir)
	c := &v.Counts
	p.Rows, p.Errors, p.Replies, p.PromptTokens, p.CompletionTokens = c.Rows, c.Errors, c.Replies, c.PromptTokens, c.CompletionTokens
	p.Finishes, p.Codes = counted(c.ByFinish), counted(c.ByCode)
	p.Total = total(v, p.Series)
	facts(p, v)
	for _, r := range v.Runs {
		p.Runs = append(p.Runs, report.Run(r))
	}
	err := a.chooseRows(ctx, p, v)
	if err == nil || errors.Is(err, stages.ErrRecord) {
		p.Verdict, err = verified(ctx, v, p.Made, err)
	}
	return p, err
}

// state says how far a job is. Whether a run is at it is not known without its lock.
func state(v *stages.View) (string, report.Mood) {
	switch {
	case v.Record != nil && v.Counts.Errors > 0:
		return "complete, with errors", report.Good
	case v.Record != nil:
		return "complete", report.Good
	case v.Shard.Of > 0:
		return fmt.Sprintf("shard %v is done", v.Shard), report.Good
	case v.Arithmetic == "":
		return "not begun", report.Quiet
	}
	return "not complete", report.Quiet
}

// total is how many rows the input has, 0 when that is not known.
func total(v *stages.View, s *metrics.Series) int64 {
	if v.Record != nil {
		return v.Counts.Rows
	}
	if s == nil || v.Shard.Of > 0 || len(s.Samples) == 0 {
		return 0
	}
	return s.Samples[len(s.Samples)-1].Total
}

// measurements reads what runs measured of themselves.
func measurements(dir string) (*metrics.Series, string) {
	path := filepath.Join(dir, stages.MetricsName)
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, stages.MetricsName + " is not there"
	}
	if err != nil {
		return nil, err.Error()
	}
	defer f.Close()
	s, err := metrics.Read(f)
	switch {
	case err != nil:
		return nil, path + " " + err.Error()
	case len(s.Samples) == 0:
		return nil, stages.MetricsName + " has none yet"
	}
	return s, ""
}

// verified holds the files of a complete job against its manifest. damage is what reading them has found.
func verified(ctx context.Context, v *stages.View, now time.Time, damage error) (report.Verdict, error) {
	out := report.Verdict{Mood: report.Quiet, Word: "not complete yet"}
	switch {
	case damage != nil:
		return report.Verdict{Mood: report.Bad, Word: "the files are damaged", Lines: []string{damage.Error()}}, damage
	case v.Arithmetic == "":
		out.Lines = []string{"No run has begun here."}
	case v.Record == nil:
		out.Lines = []string{"Rows that are done have the checksums of the journal; there is a manifest to hold the files against once the job is complete."}
		if v.Shard.Of == 0 {
			out.Lines = append(out.Lines, fmt.Sprintf("The journal was last written to %v before this page was made.", max(0, now.Sub(v.Touched)).Round(time.Second)))
		}
	default:
		return heldToManifest(ctx, v)
	}
	out.Lines = append(out.Lines, audited(v.Audited)...)
	return out, nil
}

func heldToManifest(ctx context.Context, v *stages.View) (report.Verdict, error) {
	h, err := v.Record.CheckHashes(ctx)
	if err != nil {
		return report.Verdict{}, err
	}
	if len(h.Problems) > 0 {
		return report.Verdict{Mood: report.Bad, Word: "not what the manifest says", Lines: h.Problems},
			fmt.Errorf("%s: %w: problem 1 of %d: %s", v.Dir, stages.ErrRecord, len(h.Problems), h.Problems[0])
	}
	lines := []string{
		fmt.Sprintf("%s rows and %s replies were read back: files, counts and job root are those of the manifest.", thousands(h.Rows), thousands(h.Replies)),
		fmt.Sprintf("Job root %v", h.Root),
	}
	return report.Verdict{Mood: report.Good, Word: "equal", Lines: append(lines, audited(v.Audited)...)}, nil
}

func audited(n int64) []string {
	if n == 0 {
		return []string{"No reply was made once more by the run; tfbatch verify --mode replay does it."}
	}
	return []string{thousands(n) + " replies were made once more by the run, plainly, and were equal."}
}

// facts are what made the job.
func facts(p *report.Page, v *stages.View) {
	if v.Arithmetic == "" {
		return
	}
	s := &v.Job.Sampling
	p.About = v.Job.Model.Path.Name
	if v.Run.Device != "" {
		p.About += fmt.Sprintf(" on %s, %d lanes", v.Run.Device, v.Run.Lanes)
	}
	add := func(name, format string, args ...any) {
		p.Facts = append(p.Facts, report.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("model", "%s (%s)", v.Job.Model.Path.Name, v.Model.Arch)
	add("arithmetic", "%s", v.Arithmetic)
	add("input", "%s", v.Job.Input.Path.Name)
	add("sampling", "temperature %v, top_p %v, top_k %d, min_p %v, seed %d, n %d, max_tokens %d", s.Temperature, s.TopP, s.TopK, s.MinP, s.Seed, s.N, s.MaxTokens)
	if d := v.Run.Drafting; d != nil {
		with := "no drafter"
		if d.Drafter != nil {
			with = d.Drafter.Path
		}
		add("drafting", "%s, copy %v, %s; it cannot change a token", d.Mode, d.Copy, with)
	}
	if v.Record != nil {
		f := v.Record.Facts()
		add("job root", "%v", f.Root)
		add("job sha256", "%s", f.JobSHA256)
		for _, file := range v.Record.Files() {
			add(file.Name, "%s bytes, sha256 %v", thousands(file.Bytes), file.SHA256)
		}
	}
	for _, shard := range v.Model.Shards {
		add(shard.Name, "%s bytes, sha256 %v", thousands(shard.Bytes), shard.SHA256)
	}
	var job bytes.Buffer
	_ = json.Indent(&job, v.Job.Canonical(), "", "  ") // our own JSON
	p.Job = strings.TrimSpace(job.String())
}
