package gate

import (
	"math"
	"slices"
)

// Allowance is how much slower than plain an arm may be, however quiet the machine.
const Allowance = 0.005

// Summary is the verdict on a grid.
type Summary struct {
	Exact bool          `json:"exact"` // every arm gave the replies of plain decoding
	Below int           `json:"below"` // arms in cells that were slower than plain, noise allowed
	Cells []CellSummary `json:"cells"`
	Gains []Gain        `json:"gains"` // of the arms that guess
}

// Gain is what an arm is worth over all cells.
type Gain struct {
	Arm   string  `json:"arm"`
	Sum   float64 `json:"sum"`          // of ratio - 1
	Least float64 `json:"lowest_ratio"` // of a cell
}

// CellSummary is a cell: how noisy it is, and its arms.
type CellSummary struct {
	Cell
	Floor float64      `json:"noise_floor"` // the most that plain differed from plain beside it
	Arms  []ArmSummary `json:"arms"`
}

// ArmSummary is an arm in a cell. Ratios are to the plain run of the same rotation.
type ArmSummary struct {
	Arm      string  `json:"arm"`
	PerSec   float64 `json:"tokens_per_second"` // median
	Ratio    float64 `json:"ratio"`             // median
	Low      float64 `json:"lowest_ratio"`
	High     float64 `json:"highest_ratio"`
	Drafted  int64   `json:"drafted_tokens"`
	Accepted int64   `json:"accepted_tokens"`
	Exact    bool    `json:"exact"`
	Below    bool    `json:"below"`
}

// Judge sums up what Measure returned for g.
func Judge(g *Grid, list []Measured) *Summary {
	s := &Summary{Exact: true, Cells: []CellSummary{}}
	for _, cell := range g.Cells() {
		c := judgeCell(g, cell, list)
		for _, a := range c.Arms {
			s.Exact = s.Exact && a.Exact
			if a.Below {
				s.Below++
			}
		}
		s.Cells = append(s.Cells, c)
	}
	for i, arm := range g.Arms[2:] {
		s.Gains = append(s.Gains, gain(arm, i+2, s.Cells))
	}
	return s
}

// gain sums up the i-th arm.
func gain(arm string, i int, cells []CellSummary) Gain {
	g := Gain{Arm: arm, Least: math.Inf(1)}
	for _, c := range cells {
		g.Sum += c.Arms[i].Ratio - 1
		g.Least = min(g.Least, c.Arms[i].Ratio)
	}
	return g
}

func judgeCell(g *Grid, cell Cell, list []Measured) CellSummary {
	byArm := map[string][]Measured{}
	for _, m := range list {
		if m.Cell == cell {
			byArm[m.Arm] = append(byArm[m.Arm], m)
		}
	}
	c := CellSummary{Cell: cell}
	plain := byArm[g.Arms[0]]
	for _, ratio := range ratios(byArm[g.Arms[1]], plain) {
		c.Floor = max(c.Floor, math.Abs(ratio-1))
	}
	for _, arm := range g.Arms {
		a := judgeArm(arm, byArm[arm], plain)
		a.Below = arm != g.Arms[0] && arm != g.Arms[1] && a.Ratio < 1-max(c.Floor, Allowance)
		c.Arms = append(c.Arms, a)
	}
	return c
}

func judgeArm(arm string, runs, plain []Measured) ArmSummary {
	a := ArmSummary{Arm: arm, Exact: true}
	speeds := make([]float64, len(runs))
	for i := range runs {
		speeds[i] = runs[i].PerSec()
		a.Drafted += runs[i].Drafted
		a.Accepted += runs[i].Accepted
		a.Exact = a.Exact && slices.Equal(runs[i].Replies, plain[0].Replies)
	}
	all := ratios(runs, plain)
	a.PerSec, a.Ratio = median(speeds), median(all)
	a.Low, a.High = slices.Min(all), slices.Max(all)
	return a
}

// ratios pairs runs with the plain ones of the same rotation.
func ratios(runs, plain []Measured) []float64 {
	out := make([]float64, len(runs))
	for i := range runs {
		out[i] = runs[i].PerSec() / plain[i].PerSec()
	}
	return out
}

// median of at least one value; of two in the middle their mean.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
