package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
)

// phase is where the time of some steps went: those that read prompts, or those that only draw.
type phase struct {
	Job       string     `json:"job"`
	Lanes     int        `json:"lanes"`
	Kind      string     `json:"kind"` // "prompts" or "replies"
	Steps     int        `json:"steps"`
	Rows      int64      `json:"rows"`
	Seconds   float64    `json:"seconds"`
	Share     float64    `json:"share_of_limit"`
	Operators []operator `json:"operators"`
}

// operator is one kind of operator in a phase.
type operator struct {
	Name    string  `json:"name"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"`
	OfStep  float64 `json:"of_step"`
	GBps    float64 `json:"gb_per_second"`
	GOps    float64 `json:"gops"` // two for every multiply-add
	Share   float64 `json:"share_of_limit"`
}

// phases runs every trial once more under a meter, where the device has one.
func (a *app) phases(ctx context.Context, p *prepared, d backend.Device, trials []*trial) ([]phase, error) {
	dev, ok := d.(*cpu.Device)
	if !ok {
		return nil, nil
	}
	isa, err := parseISA(a.set.isa)
	if err != nil {
		return nil, err
	}
	limits, err := cpu.MachineLimits(cpu.Options{Threads: p.job.Run.Threads, ISA: isa})
	if err != nil {
		return nil, err
	}
	var out []phase
	for _, t := range trials {
		watched, err := t.watched(ctx, dev.Watch(limits))
		if err != nil {
			return nil, err
		}
		for _, one := range watched {
			one.Job, one.Lanes = p.job.Name, t.lanes
			out = append(out, one)
		}
	}
	return out, nil
}

// watched is one run, its steps told apart by whether they read prompts.
func (t *trial) watched(ctx context.Context, m *cpu.Meter) ([]phase, error) {
	for _, q := range t.requests() {
		if err := t.engine.Admit(q); err != nil {
			return nil, err
		}
	}
	reading, drawing := newTally("prompts"), newTally("replies")
	m.Take()
	for t.engine.Active() > 0 {
		before, started := t.engine.Stats(), time.Now()
		if _, err := step(ctx, t.engine); err != nil {
			return nil, err
		}
		into, did := drawing, t.engine.Stats().Since(before)
		if did.PrefillTokens > 0 {
			into = reading
		}
		into.add(did.Rows, time.Since(started), m.Take())
	}
	return []phase{reading.phase(), drawing.phase()}, nil
}

// tally adds up the steps of a phase.
type tally struct {
	kind  string
	steps int
	rows  int64
	took  time.Duration
	order []string
	ops   map[string]*cpu.Spent
}

func newTally(kind string) *tally { return &tally{kind: kind, ops: map[string]*cpu.Spent{}} }

func (t *tally) add(rows int64, took time.Duration, spent []cpu.Spent) {
	t.steps++
	t.rows += rows
	t.took += took
	for _, s := range spent {
		sum := t.ops[s.Op]
		if sum == nil {
			sum = &cpu.Spent{Op: s.Op}
			t.ops[s.Op], t.order = sum, append(t.order, s.Op)
		}
		sum.Calls, sum.Took, sum.Least = sum.Calls+s.Calls, sum.Took+s.Took, sum.Least+s.Least
		sum.Bytes, sum.MACs = sum.Bytes+s.Bytes, sum.MACs+s.MACs
	}
}

// phase is what was added, the operators in the order of their time in the first step. What is left is the engine's.
func (t *tally) phase() phase {
	p := phase{Kind: t.kind, Steps: t.steps, Rows: t.rows, Seconds: t.took.Seconds()}
	rest, least := t.took, time.Duration(0)
	for _, name := range t.order {
		s := t.ops[name]
		rest, least = rest-s.Took, least+s.Least
		p.Operators = append(p.Operators, operator{
			Name: name, Calls: s.Calls, Seconds: s.Took.Seconds(), OfStep: ratio(s.Took, t.took), Share: s.Share(),
			GBps: rate(s.Bytes, s.Took), GOps: rate(2*s.MACs, s.Took),
		})
	}
	p.Operators = append(p.Operators, operator{Name: "drawing, scheduling", Calls: t.steps, Seconds: rest.Seconds(), OfStep: ratio(rest, t.took)})
	p.Share = ratio(least, t.took)
	return p
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// rate is thousands of millions a second.
func rate(n int64, took time.Duration) float64 {
	if took == 0 {
		return 0
	}
	return float64(n) / float64(took)
}

func printPhases(w io.Writer, list []phase) {
	for _, p := range list {
		if p.Steps == 0 {
			continue
		}
		fmt.Fprintf(w, "%s, %d lanes, steps with %s: %d of %.2f ms, %.1f rows each, %.1f rows/s, %.0f%% of the machine's limits\n", p.Job, p.Lanes, p.Kind,
			p.Steps, 1e3*p.Seconds/float64(p.Steps), float64(p.Rows)/float64(p.Steps), float64(p.Rows)/p.Seconds, 100*p.Share)
		fmt.Fprintf(w, "  %-44s %8s %8s %9s %9s %9s\n", "operator", "calls", "time", "GB/s", "Gop/s", "of limit")
		for _, o := range p.Operators {
			fmt.Fprintf(w, "  %-44s %8d %7.1f%% %9s %9s %9s\n", o.Name, o.Calls, 100*o.OfStep, number(o.GBps, ""), number(o.GOps, ""), number(100*o.Share, "%"))
		}
	}
}

// number is x for people, or nothing where nothing was counted.
func number(x float64, unit string) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%s", x, unit)
}
