// Package gate asks of a machine whether drafting is ever slower than none. It runs every
// cell of a grid (kind of prompts, way to draw, lanes) in several arms (plain, plain once
// more, each way to guess) several times, in an order that no arm has an advantage from, and
// judges each arm by its ratio to the plain run beside it. The second plain arm shows what
// of a ratio is noise. Hashes of all replies are compared.
//
// Start with [Measure], then [Judge] and [Write]. The package loads no model and knows no
// device: a [Runner] does the work and times it.
package gate

import (
	"context"
	"fmt"
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
	Place    int    `json:"place"` // in the order of the rotation
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
	Replies  []Reply `json:"-"` // in the order of the requests
}

// Runner runs trials, one at a time.
type Runner interface {
	Run(ctx context.Context, t Trial) (Outcome, error)
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

// order is how the arms follow each other in a rotation of a cell: the rows of a cyclic Latin
// square, so that over as many rotations as arms each arm is once at every place.
func (g *Grid) order(cell, rotation int) []string {
	out := make([]string, len(g.Arms))
	for i := range out {
		out[i] = g.Arms[(i+cell+rotation)%len(g.Arms)]
	}
	return out
}

// Measure runs the grid. seen, if not nil, hears of each trial once it is done.
func Measure(ctx context.Context, g *Grid, r Runner, seen func(*Measured)) ([]Measured, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	var out []Measured
	for rotation := range g.Rotations {
		for i, cell := range g.Cells() {
			for place, arm := range g.order(i, rotation) {
				m := Measured{Trial: Trial{Cell: cell, Arm: arm, Rotation: rotation, Place: place}}
				var err error
				if m.Outcome, err = r.Run(ctx, m.Trial); err != nil {
					return nil, fmt.Errorf("%v, arm %s, rotation %d: %w", cell, arm, rotation, err)
				}
				if !(m.Seconds > 0) {
					return nil, fmt.Errorf("%v, arm %s, rotation %d took %v s", cell, arm, rotation, m.Seconds)
				}
				if seen != nil {
					seen(&m)
				}
				out = append(out, m)
			}
		}
	}
	return out, nil
}
