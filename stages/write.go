package stages

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// writer puts rows back into the order of the input and writes them.
type writer struct {
	job    *jobs.Job
	out    *output
	window *semaphore.Weighted
	meter  *Meter

	held   map[int64]*row.Row // came before their turn
	next   int64              // index whose turn it is
	root   row.Root
	counts Counts
}

func (w *writer) stage() pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "write", Workers: 1, Do: w.do}
}

// do goes on until its input is closed, whatever happened to the run: a finished row is
// never lost. After a stop there are gaps; what lies behind them is written too, in order.
func (w *writer) do(_ context.Context, in <-chan *row.Row, _ chan<- *row.Row) error {
	w.held = map[int64]*row.Row{}
	w.counts = Counts{ByFinish: map[row.Finish]int64{}, ByCode: map[row.Code]int64{}}
	for r := range in {
		w.counts.row(r)
		w.meter.done(&w.counts)
		w.held[r.Index] = r
		if err := w.turn(); err != nil {
			return err
		}
	}
	for _, index := range slices.Sorted(maps.Keys(w.held)) {
		if err := w.write(w.held[index]); err != nil {
			return err
		}
	}
	return nil
}

// turn writes the rows whose turn has come.
func (w *writer) turn() error {
	for {
		r, ok := w.held[w.next]
		if !ok {
			return nil
		}
		delete(w.held, w.next)
		w.next++
		if err := w.write(r); err != nil {
			return err
		}
		w.window.Release(r.Cost)
	}
}

func (w *writer) write(r *row.Row) error {
	line := append(encodeJSON(newReply(w.job, r)), '\n')
	if err := w.out.append(line, r.Err != nil); err != nil {
		return fmt.Errorf("row %d: %w", r.Index, err)
	}
	w.digest(r)
	return nil
}

// digest adds a leaf for each reply of a row, or one for its error.
func (w *writer) digest(r *row.Row) {
	if r.Err != nil {
		w.root.Add(row.ErrorDigest(r.ID, r.Err.Code))
		return
	}
	for sample, c := range r.Choices {
		w.root.Add(row.ChoiceDigest(r.ID, sample, r.PromptHash, c.TokenHash, c.Finish))
	}
}
