package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"tfbatch/internal/backend"
	"tfbatch/internal/chat"
	"tfbatch/internal/inspect"
	"tfbatch/jobs"
	"tfbatch/stages"
)

func (a *app) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan JOBS.yaml",
		Short: "show what run would do, and write nothing",
		Long: `plan checks a job file and its models' headers, tokenizers and templates, reads the
inputs, and shows rows, prompt tokens, memory and every choice that was left to tfbatch.
No weight is read.`,
		Example: `  tfbatch plan jobs/demo.yaml
  tfbatch plan jobs.yaml --only qa --json`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.plan(c.Context(), args[0]) },
	}
	addJobFlags(c)
	c.Flags().String("out", "", "folder for the jobs' folders, instead of output.dir")
	return c
}

// jobPlan is what run would do with a job.
type jobPlan struct {
	Job     string         `json:"job"`
	Digest  string         `json:"job_sha256"`
	Model   string         `json:"model"`
	Arch    string         `json:"arch"`
	Vocab   int            `json:"vocabulary"`
	Context int            `json:"context"`
	Ends    []inspect.End  `json:"ends_at"`
	Suggest []chat.Choice  `json:"suggested_sampling"` // by the checkpoint; the job's own is what counts
	Device  string         `json:"device"`
	Lanes   int            `json:"lanes"`
	Chunk   int            `json:"chunk"`
	Pages   int            `json:"pages"`
	Draft   *plannedDraft  `json:"draft"`
	Audit   float64        `json:"audit_percent"`
	Weights int64          `json:"weight_bytes"`
	State   int64          `json:"state_bytes"`
	Limit   int64          `json:"memory_limit_bytes"`
	Input   string         `json:"input"`
	Survey  *stages.Survey `json:"input_survey"`
	Output  string         `json:"output"`
	Found   string         `json:"found,omitempty"`   // begun or complete, by an earlier run
	Blocked string         `json:"blocked,omitempty"` // why run would refuse
}

func (a *app) plan(ctx context.Context, path string) error {
	list, err := a.prepare(path)
	if err != nil {
		return err
	}
	plans := make([]*jobPlan, len(list))
	for i, p := range list {
		if plans[i], err = a.planJob(ctx, p); err != nil {
			return fmt.Errorf("job %s: %w", p.job.Name, err)
		}
	}
	if a.set.json {
		return writeJSON(a.stdout, plans)
	}
	for _, p := range plans {
		p.print(a.stdout)
	}
	return nil
}

// plannedDraft is what would guess.
type plannedDraft struct {
	Mode    string `json:"mode"`
	Copy    bool   `json:"copy"`
	Drafter string `json:"drafter"`
	Bits    int    `json:"drafter_bits"`
	Block   int    `json:"drafter_block"`
}

func (p *prepared) plannedDraft() *plannedDraft {
	d := p.drafting()
	out := &plannedDraft{Mode: d.Mode, Copy: d.Copy}
	if p.drafter != nil {
		out.Drafter, out.Bits, out.Block = d.Drafter.Path, d.Drafter.Bits, p.drafter.Block
	}
	return out
}

func (d *plannedDraft) String() string {
	var by []string
	if d.Copy {
		by = append(by, "copies")
	}
	if d.Drafter != "" {
		precision := "as released"
		if d.Bits != 0 {
			precision = fmt.Sprintf("%d bits", d.Bits)
		}
		by = append(by, fmt.Sprintf("%s (%s, up to %d)", d.Drafter, precision, d.Block))
	}
	if d.Mode == jobs.DraftOff.String() || len(by) == 0 {
		return "off"
	}
	return d.Mode + ": " + strings.Join(by, ", ")
}

func (a *app) planJob(ctx context.Context, p *prepared) (*jobPlan, error) {
	survey, err := stages.Take(ctx, &p.job, p.encoder, a.stdin, nil)
	if err != nil {
		return nil, err
	}
	info, s := p.snap.plan.Info, p.size
	out := &jobPlan{
		Job: p.job.Name, Digest: p.job.Digest(), Model: p.job.Model.Path.Name,
		Arch: info.Arch, Vocab: info.Vocab, Context: info.Context, Device: p.device,
		Ends: inspect.Ends(p.snap.tokens, p.snap.stages.EOS), Suggest: p.snap.chat.Suggested,
		Lanes: s.engine.Lanes, Chunk: s.engine.Chunk, Pages: s.engine.Pages,
		Draft: p.plannedDraft(), Audit: p.job.Audit, Weights: s.weights, State: s.state, Limit: s.limit,
		Input: p.job.Input.Path.Name, Survey: survey, Output: stages.OutputDir(&p.job),
	}
	if out.Found, err = stages.State(&p.job); err != nil {
		out.Blocked = err.Error()
	}
	return out, nil
}

func (p *jobPlan) print(w io.Writer) {
	s := p.Survey
	fmt.Fprintf(w, "job %s\n", p.Job)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-8s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("model", "%s: %s, vocabulary %d, context %d", p.Model, p.Arch, p.Vocab, p.Context)
	line("ends at", "%s", listText(p.Ends, "no token: every reply goes to its limit"))
	if len(p.Suggest) > 0 {
		line("suggest", "%s by generation_config.json; the job's sampling is used", listText(p.Suggest, ""))
	}
	line("device", "%s", p.Device)
	line("lanes", "%d, chunk %d, %d KV pages of %d positions", p.Lanes, p.Chunk, p.Pages, backend.PageKeys)
	line("drafts", "%v", p.Draft)
	if p.Audit > 0 {
		line("audit", "%v%% of the rows", p.Audit)
	}
	limit := "no known limit"
	if p.Limit > 0 {
		limit = bytesText(p.Limit)
	}
	line("memory", "%s of weights, %s of state; limit %s", bytesText(p.Weights), bytesText(p.State), limit)
	line("input", "%s: %d rows, %d errors, %d blank lines, %d skipped", p.Input, s.Rows, s.Errors, s.Blank, s.Skipped)
	for _, e := range s.First {
		line("", "line %d (%s): %s: %s", e.Line, oneLine(e.ID), e.Code, oneLine(e.Message))
	}
	line("prompts", "%d tokens, %d to %d each", s.PromptTokens, s.Shortest, s.Longest)
	line("replies", "at most %d tokens", s.MaxNewTokens)
	line("output", "%s", p.Output)
	if p.Found != "" {
		line("", "%s by an earlier run", p.Found)
	}
	if p.Blocked != "" {
		line("", "run would refuse: %s", p.Blocked)
	}
	line("digest", "%s", p.Digest)
}

// listText joins values for people; none is what an empty list is called.
func listText[T fmt.Stringer](list []T, none string) string {
	if len(list) == 0 {
		return none
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return strings.Join(texts, ", ")
}
