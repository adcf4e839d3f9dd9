package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is an engine and a clock: each arm has its speed, and each trial its noise.
type fake struct {
	speed map[string]float64
	noise func(t Trial) float64
	hash  func(t Trial) string

	moment func() float64 // how much slower the machine is now
	fail   error          // of the beginning
	late   error          // of a turn
}

// fakeRun is a trial of a fake: it ends when its arm has worked off all it has to do.
type fakeRun struct {
	*fake
	trial Trial
	left  int // turns
	spent float64
}

func (f *fake) Begin(t Trial) (Run, error) {
	return &fakeRun{fake: f, trial: t, left: fakeTurns}, f.fail
}

const fakeTurns = 10

func (r *fakeRun) Turn(context.Context) (bool, error) {
	seconds := 1 / r.speed[r.trial.Arm] / fakeTurns
	if r.noise != nil {
		seconds *= r.noise(r.trial)
	}
	if r.moment != nil {
		seconds *= r.moment()
	}
	r.spent += seconds
	r.left--
	return r.left == 0, r.late
}

func (r *fakeRun) Outcome() Outcome {
	o := Outcome{Seconds: r.spent, Drafted: 10, Accepted: 5}
	hash := "same"
	if r.hash != nil {
		hash = r.hash(r.trial)
	}
	for i := range r.trial.Lanes {
		o.Replies = append(o.Replies, Reply{Key: fmt.Sprint(i), Tokens: 100, Hash: hash})
	}
	return o
}

func grid() *Grid {
	return &Grid{Kinds: []string{"code", "chat"}, Draws: []string{"greedy", "sampled"}, Lanes: []int{1, 4}, Arms: []string{"plain", "again", "fast", "slow"}, Rotations: 4}
}

func judge(t *testing.T, f *fake) *Summary {
	t.Helper()
	list, err := Measure(t.Context(), grid(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Judge(grid(), list)
}

// TestOrderIsALatinSquare holds that no arm runs at one place more often than another.
func TestOrderIsALatinSquare(t *testing.T) {
	g := grid()
	for cell := range g.Cells() {
		seen := map[string]int{}
		for rotation := range g.Rotations {
			for place, arm := range g.order(cell, rotation) {
				seen[fmt.Sprint(arm, place)]++
			}
		}
		if len(seen) != len(g.Arms)*len(g.Arms) {
			t.Errorf("cell %d: %d pairs of arm and place, want every one once: %v", cell, len(seen), seen)
		}
	}
}

func TestSlowArmIsBelow(t *testing.T) {
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 20, "slow": 9}})
	if !s.Exact || s.Below != 8 || len(s.Cells) != 8 {
		t.Fatalf("got exact %t, %d below in %d cells", s.Exact, s.Below, len(s.Cells))
	}
	c := s.Cells[1]
	if c.Floor != 0 || c.Lanes != 4 || c.Arms[2].Ratio < 1.99 || c.Arms[2].Below || !c.Arms[3].Below || c.Arms[0].PerSec < 3999 {
		t.Errorf("got %+v", c)
	}
}

// TestGainsAreSummedOverCells holds that a loss in one cell is set against the gains of others.
func TestGainsAreSummedOverCells(t *testing.T) {
	dear := func(t Trial) float64 {
		if t.Arm == "fast" && t.Lanes == 4 {
			return 1.25
		}
		return 1
	}
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 11, "slow": 9}, noise: dear})
	want := []Gain{{"fast", 4*0.1 + 4*(0.88-1), 0.88}, {"slow", -8 * 0.1, 0.9}}
	if len(s.Gains) != len(want) {
		t.Fatalf("gains of %+v, want the two arms that guess", s.Gains)
	}
	for i, g := range s.Gains {
		if g.Arm != want[i].Arm || math.Abs(g.Sum-want[i].Sum) > 1e-9 || math.Abs(g.Least-want[i].Least) > 1e-9 {
			t.Errorf("got %+v, want %+v", g, want[i])
		}
	}
	if text := s.Text(); !strings.Contains(text, "fast: gains of 8 cells come to -0.080, the lowest ratio is 0.880\n") {
		t.Error(text)
	}
}

// TestNoiseIsAllowed holds that an arm inside what plain differs from plain is not below.
func TestNoiseIsAllowed(t *testing.T) {
	shaky := func(t Trial) float64 {
		if t.Arm == "again" && t.Rotation == 1 && t.Kind == "code" {
			return 1.25
		}
		return 1
	}
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 10, "slow": 9}, noise: shaky})
	if s.Below != 4 { // the cells of chat
		t.Errorf("%d below, want 4", s.Below)
	}
}

// TestMomentsMeetAllArms holds that a machine that becomes ever slower while a cell is measured does so for all arms.
func TestMomentsMeetAllArms(t *testing.T) {
	now := 1.0
	slower := func() float64 { now *= 1.01; return now }
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 10, "slow": 10}, moment: slower})
	for _, c := range s.Cells {
		for _, a := range c.Arms {
			if a.Low < 0.98 || a.High > 1.02 || a.Below { // one arm after the other, the last would have taken 1.35 times as long
				t.Errorf("%v: %+v", c.Cell, a)
			}
		}
	}
}

// TestAllowance holds that a loss too small to matter is none, however quiet the machine.
func TestAllowance(t *testing.T) {
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 9.96, "slow": 9.94}})
	if c := s.Cells[0]; c.Arms[2].Below || !c.Arms[3].Below {
		t.Errorf("got %+v", c)
	}
}

// TestDriftMeetsAllArms holds that a machine that slows down between rotations changes no ratio.
func TestDriftMeetsAllArms(t *testing.T) {
	drift := func(t Trial) float64 { return 1 + float64(t.Rotation) }
	s := judge(t, &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 10, "slow": 10}, noise: drift})
	for _, c := range s.Cells {
		for _, a := range c.Arms {
			if a.Low < 0.999 || a.High > 1.001 || a.Below {
				t.Errorf("%v: %+v", c.Cell, a)
			}
		}
	}
}

func TestDifferentHashIsSeen(t *testing.T) {
	f := &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 10, "slow": 10}, hash: func(t Trial) string {
		if t.Arm == "fast" && t.Rotation == 3 && t.Lanes == 4 {
			return "other"
		}
		return "same"
	}}
	s := judge(t, f)
	if s.Exact || s.Cells[0].Arms[2].Exact != true || s.Cells[1].Arms[2].Exact {
		t.Errorf("got %+v", s)
	}
	if text := s.Text(); !strings.Contains(text, "DIFFERENT") || !strings.Contains(text, "SOME REPLIES ARE NOT") {
		t.Error(text)
	}
}

func TestRefusals(t *testing.T) {
	g := grid()
	g.Arms = g.Arms[:1]
	if _, err := Measure(t.Context(), g, &fake{}, nil); err == nil {
		t.Error("a grid of one arm was accepted")
	}
	broken := errors.New("device lost")
	if _, err := Measure(t.Context(), grid(), &fake{speed: map[string]float64{"plain": 1}, fail: broken}, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := Measure(t.Context(), grid(), &fake{speed: map[string]float64{"plain": 1}, late: broken}, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := Measure(t.Context(), grid(), &fake{speed: map[string]float64{}, noise: func(Trial) float64 { return 0 }}, nil); err == nil {
		t.Error("a trial without a time was accepted")
	}
}

// TestRecords holds that the files are whole, and that summary.json vouches for them.
func TestRecords(t *testing.T) {
	list, err := Measure(t.Context(), grid(), &fake{speed: map[string]float64{"plain": 10, "again": 10, "fast": 20, "slow": 9}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", "gate")
	r := &Records{Metadata: map[string]string{"device": "fake"}, Measured: list, Summary: Judge(grid(), list)}
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, r); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second gate in the same folder: %v", err)
	}
	var summary struct {
		Below int               `json:"below"`
		Files map[string]string `json:"files_sha256"`
	}
	if err := json.Unmarshal(read(t, dir, "summary.json"), &summary); err != nil || summary.Below != 8 || len(summary.Files) != 5 {
		t.Fatalf("got %+v, %v", summary, err)
	}
	for name, want := range summary.Files {
		if got := sha256.Sum256(read(t, dir, name)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s: digest differs", name)
		}
	}
	if n := strings.Count(string(read(t, dir, "cells.jsonl")), "\n"); n != 8*4*4 {
		t.Errorf("%d trials, want %d", n, 8*4*4)
	}
	if n := strings.Count(string(read(t, dir, "requests.jsonl")), "\n"); n != 4*4*4*(1+4) {
		t.Errorf("%d replies, want %d", n, 4*4*4*(1+4))
	}
	d := xml.NewDecoder(strings.NewReader(string(read(t, dir, "summary.svg"))))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
