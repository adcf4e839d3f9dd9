package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"tfbatch/internal/draft"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
	"tfbatch/internal/model"
	"tfbatch/jobs"
	"tfbatch/loader"
	"tfbatch/stages"
)

// drafterPlan is a job's drafter before any weight is read: it fits its target.
type drafterPlan struct {
	*dspark.Checkpoint
	facts stages.DrafterFiles
}

// openDrafter is nil when the job has none, or guesses nothing.
func openDrafter(d *jobs.Drafter, target model.Info) (*drafterPlan, error) {
	if d.Path.Name == "" || d.Guesses == jobs.DraftOff {
		return nil, nil
	}
	p, err := planDrafter(d, target)
	if err != nil {
		return nil, fmt.Errorf("drafter %s: %w", d.Path.Name, err)
	}
	return p, nil
}

func planDrafter(d *jobs.Drafter, target model.Info) (*drafterPlan, error) {
	fsys, err := modelFiles(d.Path)
	if err != nil {
		return nil, err
	}
	weights, err := loader.Open(fsys)
	if err != nil {
		return nil, err
	}
	// Trim: a CPU pays for every row of a block, and most rounds ask for a part of it.
	plan, err := dspark.Open(weights, target, dspark.Options{Bits: d.Bits, Trim: true})
	if err != nil {
		return nil, err
	}
	config, err := weights.ReadFile(configFile, model.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	return &drafterPlan{plan, stages.DrafterFiles{Path: d.Path.Name, Bits: d.Bits, Config: sha256.Sum256(config)}}, nil
}

// weights and state are the memory that the drafter takes; those of no drafter are 0.
func (p *drafterPlan) weights() int64 {
	if p == nil {
		return 0
	}
	return p.Plan.Bytes()
}

func (p *drafterPlan) state(target model.Info, c engine.Config) int64 {
	if p == nil {
		return 0
	}
	return p.Footprint(target, drafterShape(c))
}

// bytes is what will be read of it.
func (p *drafterPlan) bytes() int64 {
	if p == nil {
		return 0
	}
	return p.Tensors.Bytes()
}

func drafterShape(c engine.Config) dspark.Shape {
	return dspark.Shape{Lanes: c.Lanes, Pages: c.Pages, KVF32: c.KVF32}
}

// drafted gives c what the job guesses with. The drafter itself is not loaded yet: it only
// says what it will watch.
func drafted(c engine.Config, d *jobs.Drafter, p *drafterPlan) engine.Config {
	c.Depth = depthOf(d.Guesses)
	if d.Copy {
		c.Quick = &draft.Copy{}
	}
	if p != nil {
		c.Drafter = planned{taps: p.Taps}
	}
	return c
}

func depthOf(g jobs.Guesses) engine.Depth {
	if g == jobs.DraftAuto {
		return engine.Auto
	}
	return engine.Depth(g)
}

// planned stands for a drafter in the size of an engine, and for nothing else.
type planned struct {
	draft.Watcher
	taps []int
}

func (p planned) Taps() []int { return p.taps }

// draftedEngine loads the drafter beside the model, and makes the engine with it.
func (l *loaded) draftedEngine(ctx context.Context, p *drafterPlan, c engine.Config, progress func(n int64)) (*engine.Engine, error) {
	if p == nil {
		return l.engine(c)
	}
	d, digests, err := p.Load(ctx, l.device, l.model, drafterShape(c), progress)
	if err != nil {
		return nil, fmt.Errorf("drafter %s: %w", p.facts.Path, err)
	}
	if p.facts.Shards, err = shardDigests(digests); err != nil {
		return nil, err
	}
	c.Drafter = d
	return l.engine(c)
}

// drafting is what a manifest says of it; the counts follow.
func (p *prepared) drafting() *stages.Drafting {
	d := &p.job.Drafter
	out := &stages.Drafting{Mode: d.Guesses.String(), Copy: d.Copy && d.Guesses != jobs.DraftOff}
	if p.drafter != nil {
		out.Drafter = &p.drafter.facts
	}
	return out
}

// audit is nil when the job has none.
func (p *prepared) audit(m *loaded) (*stages.Audit, error) {
	if p.job.Audit == 0 {
		return nil, nil
	}
	eng, err := m.engine(alone(p.size.engine))
	if err != nil {
		return nil, err
	}
	return &stages.Audit{Engine: eng, Percent: p.job.Audit, Margin: m.margin(p.size.engine)}, nil
}

// margin measures how near to another token a token was.
func (l *loaded) margin(c engine.Config) func(ctx context.Context, ids []int32) (float32, error) {
	return func(ctx context.Context, ids []int32) (float32, error) {
		return engine.Margin(ctx, l.device, l.model, c, ids)
	}
}

// uneven makes a refusal of the one that the engine has: it is found with the weights there,
// but before a row is run.
func uneven(err error) error {
	if errors.Is(err, engine.ErrUneven) {
		return refused(err)
	}
	return err
}
