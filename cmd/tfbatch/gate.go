package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tfbatch/internal/backend"
	"tfbatch/internal/engine"
	"tfbatch/internal/gate"
	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/stages"
)

func (a *app) gateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "gate JOBS.yaml",
		Short: "show whether drafting is ever slower than none",
		Long: `gate takes each job of the file as a kind of prompts and runs them greedily and sampled, on
several numbers of lanes, in several arms: plain, plain once more (what differs there is
noise), copies, and the job's drafter as released and in 8 bits, each beside copies as run has
them. The arms run side by side in short turns, so that they find the machine in the same
moods. Replies have a given length. All hashes are compared.

Exit codes: 0 no arm is slower, 4 a reply differs, 6 a cell is below plain by more than the
noise, and by more than 0.5 %.`,
		Example: `  tfbatch bench gate jobs/gate.yaml
  tfbatch bench gate jobs/gate.yaml --tokens 512 --rotations 5 --out gate
  tfbatch bench gate jobs/gate.yaml --clock cpu --threads 1
  tfbatch bench gate jobs/gate.yaml --only chat --draws greedy --try-lanes 1 --arms copy`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return a.gate(c.Context(), args[0]) },
	}
	addJobFlags(c)
	f := c.Flags()
	f.IntSlice("try-lanes", []int{1, 4, 8, 16}, "numbers of lanes to measure")
	f.Int("tokens", 512, "tokens of each reply")
	f.Int("rotations", 3, "runs of each arm in each cell")
	f.String("clock", clockWall, "time that is compared: wall, or cpu, that of the processors, which other programs cannot take; --threads 1 then, since waiting threads look for work")
	f.StringSlice("draws", gateDraws, "ways to draw that are measured")
	f.StringSlice("arms", nil, "arms to measure beside plain: copy, drafter, drafter-q8; all of them if none is named")
	f.String("out", "", "folder to make for the records")
	return c
}

// The arms, and the ways to draw.
const (
	armPlain   = "plain"
	armAgain   = "plain-again"
	armCopy    = "copy"
	armDrafter = "drafter"
	armQ8      = "drafter-q8"

	drawGreedy  = "greedy"
	drawSampled = "sampled"
)

// The clocks.
const (
	clockWall = "wall"
	clockCPU  = "cpu"
)

var (
	gateDraws   = []string{drawGreedy, drawSampled}
	guessedArms = []string{armCopy, armDrafter, armQ8}
)

func (a *app) gate(ctx context.Context, path string) error {
	s := &a.set
	if s.tokens < 1 || s.rotations < 1 || len(s.lanes) == 0 || slices.Min(s.lanes) < 1 || len(s.draws) == 0 {
		return usage(errors.New("--tokens, --rotations, --try-lanes and --draws need at least 1"))
	}
	if err := errors.Join(oneOf("clock", []string{s.clock}, []string{clockWall, clockCPU}), oneOf("draws", s.draws, gateDraws), oneOf("arms", s.arms, guessedArms)); err != nil {
		return usage(err)
	}
	if _, err := os.Lstat(s.out); s.out != "" && err == nil {
		return refused(fmt.Errorf("--out: %s is there already", s.out))
	}
	records := s.out
	s.out, s.above.Lanes = "", slices.Max(s.lanes)
	list, err := a.prepare(path)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.job.Drafter.Guesses == jobs.DraftOff {
			return usage(fmt.Errorf("job %s: drafting is off, which leaves nothing to compare", p.job.Name))
		}
	}
	arms, err := a.gateArms(list)
	if err != nil {
		return usage(err)
	}
	bench := &gateBench{app: a, kinds: map[string]*gateKind{}}
	defer bench.close()
	grid := &gate.Grid{Draws: s.draws, Lanes: s.lanes, Arms: arms, Rotations: s.rotations}
	for _, p := range list {
		grid.Kinds = append(grid.Kinds, p.job.Name)
		if err := bench.open(ctx, p, grid.Arms); err != nil {
			return fmt.Errorf("job %s: %w", p.job.Name, err)
		}
	}
	measured, err := gate.Measure(ctx, grid, bench, func(m *gate.Measured) {
		a.log.Info("measured", "cell", m.Cell, "arm", m.Arm, "rotation", m.Rotation, "tokens_per_second", m.PerSec())
	})
	if err != nil {
		return err
	}
	summary := gate.Judge(grid, measured)
	if records != "" {
		metadata, err := bench.metadata(grid, list)
		if err != nil {
			return err
		}
		if err := gate.Write(records, &gate.Records{Metadata: metadata, Measured: measured, Summary: summary}); err != nil {
			return err
		}
	}
	return a.gateVerdict(summary)
}

func (a *app) gateVerdict(s *gate.Summary) error {
	if a.set.json {
		if err := writeJSON(a.stdout, s); err != nil {
			return err
		}
	} else {
		fmt.Fprint(a.stdout, s.Text())
	}
	switch {
	case !s.Exact:
		return &coded{exitDiffers, errors.New(s.Verdict())}
	case s.Below > 0:
		return &coded{exitBelow, errors.New(s.Verdict())}
	}
	return nil
}

// gateArms are the arms that every job of the list has, of those that were asked for.
func (a *app) gateArms(list []*prepared) ([]string, error) {
	arms := []string{armPlain, armAgain}
	bare := slices.IndexFunc(list, func(p *prepared) bool { return p.drafter == nil })
	for _, arm := range guessedArms {
		named := slices.Contains(a.set.arms, arm)
		switch {
		case named && arm != armCopy && bare >= 0:
			return nil, fmt.Errorf("--arms: %s, and job %s has no drafter", arm, list[bare].job.Name)
		case named, len(a.set.arms) == 0 && (arm == armCopy || bare < 0):
			arms = append(arms, arm)
		}
	}
	return arms, nil
}

// oneOf refuses a flag's values that are not among known.
func oneOf(flag string, values, known []string) error {
	for _, v := range values {
		if !slices.Contains(known, v) {
			return fmt.Errorf("--%s: is %q, want some of %s", flag, v, strings.Join(known, ", "))
		}
	}
	return nil
}

// gateBench runs trials on engines that stay open: one for each job and arm.
type gateBench struct {
	app   *app
	kinds map[string]*gateKind
}

// gateKind is a job with its prompts.
type gateKind struct {
	*prepared
	model   *loaded
	rows    []*row.Row
	engines map[string]*engine.Engine
}

func (b *gateBench) close() {
	for _, k := range b.kinds {
		_ = k.model.device.Close() // nothing was written through it
	}
}

// open loads a job's model and makes an engine for each arm.
func (b *gateBench) open(ctx context.Context, p *prepared, arms []string) error {
	k := &gateKind{prepared: p, engines: map[string]*engine.Engine{}}
	var err error
	if k.rows, err = b.app.gateRows(ctx, p); err != nil {
		return err
	}
	if k.model, err = b.app.load(ctx, p, nil); err != nil {
		return err
	}
	b.kinds[p.job.Name] = k
	for _, arm := range arms {
		if k.engines[arm], err = k.engine(ctx, arm, b.app.set.tokens); err != nil {
			return fmt.Errorf("arm %s: %w", arm, err)
		}
	}
	for _, arm := range arms { // a first run, of pages that were never touched, is not measured
		t := gate.Trial{Cell: gate.Cell{Kind: p.job.Name, Draw: drawGreedy, Lanes: p.size.engine.Lanes}, Arm: arm}
		r, err := b.begin(t, min(gateWarm, b.app.set.tokens))
		for ended := false; err == nil && !ended; {
			ended, err = r.Turn(ctx)
		}
		if err != nil {
			return fmt.Errorf("arm %s: %w", arm, err)
		}
	}
	return nil
}

// gateWarm is how many tokens the first run of an engine draws.
const gateWarm = 16

// gateRows are the job's rows that leave room for the tokens, in the order of their lines.
func (a *app) gateRows(ctx context.Context, p *prepared) ([]*row.Row, error) {
	var rows []*row.Row
	_, err := stages.Take(ctx, &p.job, p.encoder, a.stdin, func(r *row.Row) {
		if len(r.Tokens)+a.set.tokens <= p.snap.plan.Info.Context {
			rows = append(rows, r)
		}
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("input %s has no prompt that leaves room for %d tokens", p.job.Input.Path.Name, a.set.tokens)
	}
	slices.SortFunc(rows, func(x, y *row.Row) int { return int(x.Index - y.Index) })
	return rows, err
}

// engine is one for an arm, with pages for what the grid will ask.
func (k *gateKind) engine(ctx context.Context, arm string, tokens int) (*engine.Engine, error) {
	longest := 0
	for _, r := range k.rows {
		longest = max(longest, len(r.Tokens))
	}
	c := k.size.engine
	c = engine.Config{
		Lanes: c.Lanes + 1, // of which one stays free, as at the end of a job: no row waits
		Chunk: c.Chunk, Context: c.Context, KVF32: c.KVF32,
		Pages: c.Lanes * ((longest + tokens + backend.PageKeys - 1) / backend.PageKeys),
	}
	d := k.job.Drafter
	d.Copy = true
	var plan *drafterPlan
	switch arm {
	case armPlain, armAgain:
		return k.model.engine(c)
	case armDrafter, armQ8:
		d.Bits = 0
		if arm == armQ8 {
			d.Bits = 8
		}
		var err error
		if plan, err = openDrafter(&d, k.snap.plan.Info); err != nil { // a checkpoint is loaded once
			return nil, err
		}
	}
	e, err := k.model.draftedEngine(ctx, plan, drafted(c, &d, plan), nil)
	if plan != nil && k.drafter.facts.Shards == nil {
		k.drafter.facts.Shards = plan.facts.Shards
	}
	return e, err
}

// gateMetadata is what was measured on what.
type gateMetadata struct {
	Version    string            `json:"version"`
	Binary     string            `json:"binary_sha256"`
	Arithmetic string            `json:"arithmetic"`
	Grid       *gate.Grid        `json:"grid"`
	Tokens     int               `json:"tokens"`
	Clock      string            `json:"clock"`
	Jobs       []gateJobMetadata `json:"jobs"`
}

type gateJobMetadata struct {
	Job     string               `json:"job"`
	Digest  string               `json:"job_sha256"`
	Device  string               `json:"device"`
	Mode    string               `json:"mode"`
	Model   stages.ModelFiles    `json:"model"`
	Drafter *stages.DrafterFiles `json:"drafter"`
}

func (b *gateBench) metadata(g *gate.Grid, list []*prepared) (gateMetadata, error) {
	binary, err := binaryDigest()
	m := gateMetadata{Version: version(), Binary: binary, Arithmetic: arithmeticOf(&list[0].job), Grid: g, Tokens: b.app.set.tokens, Clock: b.app.set.clock}
	for _, p := range list {
		k := b.kinds[p.job.Name]
		files := p.snap.files
		files.Shards = k.model.shards
		j := gateJobMetadata{Job: p.job.Name, Digest: p.job.Digest(), Device: k.model.device.Name(), Mode: p.job.Drafter.Guesses.String(), Model: files}
		if p.drafter != nil {
			j.Drafter = &p.drafter.facts
		}
		m.Jobs = append(m.Jobs, j)
	}
	return m, err
}
