package modeltest

import (
	"context"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Subject is a loaded model and its device.
type Subject struct {
	Device backend.Device
	Model  model.Model
}

// Lanes runs forwards on a state, as the engine would, but says no more than it must.
type Lanes struct {
	t     *testing.T
	on    Subject
	state model.State
	shape model.Shape
	pages [][]int32
}

// pagesPerLane is enough for the longest lane of the suite.
const pagesPerLane = 3

// NewLanes makes a state of n lanes whose pages lie in an order of their own. Every row's logits
// are wanted, and the output of every layer is tapped.
func NewLanes(t *testing.T, on Subject, n, window int, kvF32 bool) *Lanes {
	t.Helper()
	l := &Lanes{t: t, on: on, shape: model.Shape{
		Lanes: n, Pages: n * pagesPerLane, Rows: 1024, Heads: 1024, Window: window, KVF32: kvF32,
	}}
	for tap := range on.Model.Info().Layers {
		l.shape.Taps = append(l.shape.Taps, tap)
	}
	for lane := range n {
		var pages []int32
		for c := range pagesPerLane {
			pages = append(pages, int32((c*n+(n-1-lane))%l.shape.Pages))
		}
		l.pages = append(l.pages, pages)
	}
	var err error
	if l.state, err = on.Model.NewState(l.shape); err != nil {
		t.Fatal(err)
	}
	return l
}

// Run is consecutive rows of one lane, the first at position At.
type Run struct {
	Lane, At int
	IDs      []int32
}

// Rows is what a forward gave for each row.
type Rows struct {
	Logits [][]float32
	Taps   [][]float32 // [rows][layers·Hidden]
}

// Forward runs the rows of all runs together and returns them in order.
func (l *Lanes) Forward(runs ...Run) Rows {
	l.t.Helper()
	b := l.batch(runs...)
	for i := range b.IDs {
		b.Heads = append(b.Heads, int32(i))
	}
	return l.forward(b)
}

// batch places the rows of runs and wants no logits.
func (l *Lanes) batch(runs ...Run) *model.Batch {
	b := &model.Batch{Rows: backend.Rows{Pages: l.pages}, Taps: true}
	for _, r := range runs {
		for i, id := range r.IDs {
			b.IDs = append(b.IDs, id)
			b.Rows.Lane = append(b.Rows.Lane, int32(r.Lane))
			b.Rows.Pos = append(b.Rows.Pos, int32(r.At+i))
		}
	}
	return b
}

func (l *Lanes) forward(b *model.Batch) Rows {
	l.t.Helper()
	p := l.on.Device.Begin()
	out := l.state.Forward(p, b)
	info := l.on.Model.Info()
	logits := make([]float32, len(b.Heads)*info.Vocab)
	taps := make([]float32, len(b.IDs)*info.Hidden*info.Layers)
	if out.Logits != nil {
		p.Read(logits, out.Logits)
	}
	p.Read(taps, out.Taps)
	if err := p.Commit(context.Background()); err != nil {
		l.t.Fatal(err)
	}
	return Rows{split(logits, info.Vocab), split(taps, info.Hidden*info.Layers)}
}

func split(x []float32, size int) (rows [][]float32) {
	for ; len(x) > 0; x = x[size:] {
		rows = append(rows, x[:size])
	}
	return rows
}
