// Package gate asks of a machine whether drafting is ever slower than none. It runs every
// cell of a grid (kind of prompts, way to draw, lanes) in several arms (plain, plain once
// more, each way to guess) several times, and judges each arm by its ratio to the plain run
// beside it. The arms of a cell run side by side, in short turns, so that a machine that is
// slower for a second is slower for all of them. The second plain arm shows what of a ratio is
// noise. Hashes of all replies are compared.
//
// Start with [Measure], then [Judge] and [Write]. The package loads no model and knows no
// device: a [Runner] does the work and times it.
package gate

import (
	"context"
	"fmt"
	"slices"
)

// Grid is what to measure. Arms[0] is plain decoding, Arms[1] the same once more.
type Grid struct {
	Kinds     []string `json:"kinds"` // of prompts
	Draws     []string `json:"draws"`
	Lanes     []int    `json:"lanes"`
	Arms      []string `json:"arms"`
	Rotations int      `json:"rotations"` // runs of each arm in each cell
}

// Cell is one place of the grid.
type Cell struct {
	Kind  string `json:"kind"`
	Draw  string `json:"draw"`
	Lanes int    `json:"lanes"`
}

func (c Cell) String() string { return fmt.Sprintf("%s %s %d", c.Kind, c.Draw, c.Lanes) }

// Trial is one run: an arm in a cell.
type Trial struct {
	Cell
	Arm      string `json:"arm"`
	Rotation int    `json:"rotation"`
	Place    int    `json:"place"` // in the rotation's first turn
}

// Reply is what a request came to.
type Reply struct {
	Key    string `json:"key"`
	Tokens int    `json:"tokens"`
	Hash   string `json:"token_sha256"`
}

// Outcome is what a trial came to.
type Outcome struct {
	Seconds  float64 `json:"seconds"`
	Drafted  int64   `json:"drafted_tokens"`
	Accepted int64   `json:"accepted_tokens"`
	Rounds   int64   `json:"rounds"`           // forwards
	Asked    int64   `json:"rounds_asked"`     // in which the drafter was asked
	Watched  int64   `json:"rounds_watched"`   // in which it watched
	Drafting float64 `json:"drafting_seconds"` // of the wall clock, in the drafter
	Host     float64 `json:"host_seconds"`     // of the wall clock, neither in the drafter nor in a forward
	Replies  []Reply `json:"-"`                // in the order of the requests
}

// Runner begins trials. Of each arm one is under way at a time.
type Runner interface {
	Begin(t Trial) (Run, error)
}

// Run is a trial that has begun. It takes no time but in Turn.
type Run interface {
	// Turn goes on for some milliseconds, and reports whether the trial has ended.
	Turn(ctx context.Context) (ended bool, err error)
	// Outcome is what a trial that has ended came to.
	Outcome() Outcome
}

// Measured is a trial with what it came to.
type Measured struct {
	Trial
	Outcome
}

// PerSec is the tokens of all replies per second.
func (m *Measured) PerSec() float64 {
	n := 0
	for _, r := range m.Replies {
		n += r.Tokens
	}
	return float64(n) / m.Seconds
}

// Cells lists the cells of the grid.
func (g *Grid) Cells() []Cell {
	var out []Cell
	for _, kind := range g.Kinds {
		for _, draw := range g.Draws {
			for _, lanes := range g.Lanes {
				out = append(out, Cell{kind, draw, lanes})
			}
		}
	}
	return out
}

// check refuses a grid that nothing could be judged by.
func (g *Grid) check() error {
	if len(g.Arms) < 2 || g.Rotations < 1 || len(g.Cells()) == 0 {
		return fmt.Errorf("grid of %d cells, %d arms and %d rotations: at least 1, 2 and 1 are needed", len(g.Cells()), len(g.Arms), g.Rotations)
	}
	return nil
}

// order is how the arms follow each other, first in a rotation of a cell and shifted by one in each turn after: the
// rows of a cyclic Latin square, so that over as many turns as arms each arm is once at every place.
func (g *Grid) order(cell, rotation int) []string {
	out := make([]string, len(g.Arms))
	for i := range out {
		out[i] = g.Arms[(i+cell+rotation)%len(g.Arms)]
	}
	return out
}

// Measure runs the grid. seen, if not nil, hears of each trial once its cell is done.
func Measure(ctx context.Context, g *Grid, r Runner, seen func(*Measured)) ([]Measured, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	var out []Measured
	for rotation := range g.Rotations {
		for i, cell := range g.Cells() {
			list, err := g.contest(ctx, r, cell, i, rotation)
			if err != nil {
				return nil, err
			}
			for i := range list {
				if seen != nil {
					seen(&list[i])
				}
			}
			out = append(out, list...)
		}
	}
	return out, nil
}

// contest runs all arms of a cell side by side.
func (g *Grid) contest(ctx context.Context, r Runner, cell Cell, i, rotation int) ([]Measured, error) {
	list, runs := make([]Measured, len(g.Arms)), map[string]Run{}
	for place, arm := range g.order(i, rotation) {
		m := &list[place]
		m.Trial = Trial{Cell: cell, Arm: arm, Rotation: rotation, Place: place}
		var err error
		if runs[arm], err = r.Begin(m.Trial); err != nil {
			return nil, m.failed(err)
		}
	}
	for turn := 0; len(runs) > 0; turn++ {
		arms := g.order(i, rotation+turn)
		if turn%2 == 1 { // or each arm would always find the memory as the same other one leaves it
			slices.Reverse(arms)
		}
		for _, arm := range arms {
			run := runs[arm]
			if run == nil {
				continue
			}
			m := &list[slices.IndexFunc(list, func(m Measured) bool { return m.Arm == arm })]
			switch ended, err := run.Turn(ctx); {
			case err != nil:
				return nil, m.failed(err)
			case ended:
				delete(runs, arm)
				if m.Outcome = run.Outcome(); !(m.Seconds > 0) {
					return nil, m.failed(fmt.Errorf("took %v s", m.Seconds))
				}
			}
		}
	}
	return list, nil
}

func (t *Trial) failed(err error) error {
	return fmt.Errorf("%v, arm %s, rotation %d: %w", t.Cell, t.Arm, t.Rotation, err)
}
