package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tfbatch/internal/inspect"
	"tfbatch/jobs"
)

func (a *app) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "say what a checkpoint is, and why it is refused",
		Long: `inspect reads the headers of a checkpoint: its architecture, its sizes by type, what it takes to
run, its tokenizer and chat template, whether a drafter fits it, and the reason where tfbatch does not run it. Weights are read
for their digests alone.

Exit codes: 0 tfbatch runs it, 8 it does not, or the drafter does not fit.`,
		Example: `  tfbatch inspect ./LFM2-24B-A2B-4bit
  tfbatch inspect ./LFM2.5-1.2B --drafter ./LFM2.5-1.2B-DSpark --digests --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("inspect takes one model: a folder, builtin:NAME or the id of a repository, org/name; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.inspect(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.Bool("digests", false, "read every shard and show its SHA-256")
	f.String("drafter", "", "a DSpark drafter to hold to the model")
	f.String("progress", progressAuto, "auto (a bar on a terminal, else none) or none")
	return c
}

func (a *app) inspect(ctx context.Context, path string) error {
	fsys, err := modelFiles(jobs.Path{Name: path, File: path})
	if err != nil {
		return refused(err)
	}
	r, err := inspect.Open(fsys)
	if err != nil {
		return refused(fmt.Errorf("%s: %w", path, err))
	}
	if name := a.set.drafter; name != "" {
		fsys, err := modelFiles(jobs.Path{Name: name, File: name})
		if err == nil {
			err = r.With(fsys)
		}
		if err != nil {
			return refused(fmt.Errorf("%s: %w", name, err))
		}
	}
	if a.set.digests {
		bar := a.newProgress("inspect")
		defer bar.close()
		if err := r.Digest(ctx, bar.loading(r.Bytes)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		bar.close()
	}
	if a.set.json {
		err = writeJSON(a.stdout, r)
	} else {
		printReport(a.stdout, path, r)
	}
	if err == nil && !r.Runs() {
		return refused(nil) // the report has said why
	}
	return err
}

func printReport(w io.Writer, path string, r *inspect.Report) {
	fmt.Fprintf(w, "%s\n", path)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	if m := r.Model; m != nil {
		line("model", "%s, vocabulary %d, width %d, context %d", m.Arch, m.Vocab, m.Hidden, m.Context)
		line("layers", "%d, of which a drafter may watch any", m.Layers)
		line("weights", "%s: %s", bytesText(m.Resides), groupsText(m.Weights))
		line("state", "%s for each token of a lane, %s more for each lane", bytesText(m.Token), bytesText(m.Lane))
	}
	if t := r.Text; t != nil {
		printText(line, t)
	}
	line("files", "%s: %s", bytesText(r.Bytes), groupsText(r.Tensors))
	for _, sh := range r.Shards {
		if sh.SHA256 != "" {
			line("", "%s %s", sh.SHA256, sh.Name)
		}
	}
	if r.Config != "" {
		line("config", "%s", r.Config)
	}
	if d := r.Drafter; d != nil && d.Refused == "" {
		line("drafter", "fits: up to %d guesses a round, watches layers %v, %s", d.Block, d.Taps, groupsText(d.Weights))
	} else if d != nil {
		line("drafter", "does not fit: %s", oneLine(d.Refused))
	}
	if r.Refused != "" {
		line("refused", "%s", oneLine(r.Refused))
	}
}

func printText(line func(name, format string, args ...any), t *inspect.Text) {
	if t.Tokenizer != "" {
		line("tokens", "%d, replies end at %s; %s", t.Tokens, listText(t.Ends, "none"), t.Tokenizer)
	}
	switch {
	case t.Template != "":
		line("chat", "%s; %s", t.From, t.Template)
	case t.Refused == "":
		line("chat", "no template; a job gives prompt.template or prompt.raw")
	}
	if len(t.Suggested) > 0 {
		line("suggest", "%s", listText(t.Suggested, ""))
	}
	if t.Refused != "" {
		line("refused", "%s", oneLine(t.Refused))
	}
}

// groupsText lists groups: "12 affine4/64 (1.2 GiB), 40 vectors (80.0 KiB)".
func groupsText(list []inspect.Group) (text string) {
	for i, g := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d %s (%s)", g.Count, g.Kind, bytesText(g.Bytes))
	}
	return text
}
