package dspark

import (
	"context"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/builtin"
	"tfbatch/internal/cpu"
	"tfbatch/internal/draft"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

const (
	targetName  = "gopher-15m"
	drafterName = "gopher-15m-dspark"
)

// runner stands for the engine: a target on the CPU, its drafter, and lanes that go through both.
type runner struct {
	t     testing.TB
	dev   backend.Device
	m     model.Model
	state model.State
	d     *Drafter
	pages [][]int32
}

// pagesPerLane is room for the longest lane of the tests.
const pagesPerLane = 10

func snapshot(t testing.TB, name string) *loader.Snapshot {
	t.Helper()
	dir, err := builtin.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func device(t testing.TB) backend.Device {
	t.Helper()
	dev, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func target(t testing.TB, dev backend.Device) model.Model {
	t.Helper()
	c, err := families.Open(snapshot(t, targetName))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := c.Load(t.Context(), dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newRunner loads the builtin pair for some lanes.
func newRunner(t testing.TB, lanes int) *runner {
	t.Helper()
	dev := device(t)
	r := &runner{t: t, dev: dev, m: target(t, dev)}
	r.d = r.drafter(lanes, Options{})
	var err error
	r.state, err = r.m.NewState(model.Shape{
		Lanes: lanes, Pages: lanes * pagesPerLane, Rows: 3000, Heads: 100, Window: 1 + r.d.cfg.block, Taps: r.d.Taps(), KVF32: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for lane := range lanes {
		var pages []int32
		for c := range pagesPerLane {
			pages = append(pages, int32(c*lanes+lane))
		}
		r.pages = append(r.pages, pages)
	}
	return r
}

// drafter loads another drafter for the same target.
func (r *runner) drafter(lanes int, o Options) *Drafter {
	r.t.Helper()
	c, err := Open(snapshot(r.t, drafterName), r.m.Info(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	d, digests, err := c.Load(r.t.Context(), r.dev, r.m, Shape{Lanes: lanes, Pages: lanes * pagesPerLane, KVF32: true}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(digests) != 1 {
		r.t.Fatalf("%d digests of one file", len(digests))
	}
	return d
}

// span is consecutive rows of a lane, the first at position at.
type span struct {
	lane, at int
	ids      []int32
}

// forward runs rows through the target; the drafter watches.
func (r *runner) forward(spans ...span) {
	r.t.Helper()
	b := &model.Batch{Rows: backend.Rows{Pages: r.pages}, Taps: true}
	for _, s := range spans {
		for i, id := range s.ids {
			b.IDs = append(b.IDs, id)
			b.Rows.Lane = append(b.Rows.Lane, int32(s.lane))
			b.Rows.Pos = append(b.Rows.Pos, int32(s.at+i))
		}
	}
	p := r.dev.Begin()
	out := r.state.Forward(p, b)
	if err := r.d.Watch(p, out.Taps, b.Rows); err != nil {
		r.t.Fatal(err)
	}
	if err := p.Commit(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// propose asks for guesses of the lanes.
func (r *runner) propose(most int, lanes ...int) []draft.Ask {
	r.t.Helper()
	asks := make([]draft.Ask, len(lanes))
	for i, lane := range lanes {
		asks[i] = draft.Ask{Lane: lane, Most: most}
	}
	if err := r.d.Propose(context.Background(), asks); err != nil {
		r.t.Fatal(err)
	}
	return asks
}
