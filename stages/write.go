package stages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// syncEvery is how often the journal is brought to the disk. A row is safe from the death of
// this process as soon as it is written; a sync keeps it when the machine dies too. Syncing
// every row would cost a slow disk more than the rows do, and never doing it would leave
// their number to the system. With a second between two, a power cut costs a second of work,
// and the rows that are made again have the same bytes.
const syncEvery = time.Second

// writer takes finished rows to the journal, in the order that they come.
type writer struct {
	job    *jobs.Job
	done   *doneRows
	window *semaphore.Weighted
	meter  *Meter
	path   string // of the journal, for errors
}

func (w *writer) stage() pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "write", Workers: 1, Do: w.do}
}

// do goes on until its input is closed, whatever happened to the run: a finished row is
// never lost.
func (w *writer) do(_ context.Context, in <-chan *row.Row, _ chan<- *row.Row) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case r, open := <-in:
			if !open {
				return w.safe(w.done.log.Sync())
			}
			line := append(encodeJSON(newReply(w.job, r)), '\n')
			if err := w.safe(w.done.append(r, line)); err != nil {
				return err
			}
			w.window.Release(r.Cost)
			w.meter.done(&w.done.counts)
		case <-tick.C:
			if err := w.safe(w.done.log.Sync()); err != nil {
				return err
			}
		}
	}
}

// safe says of a failed disk what it did not cost.
func (w *writer) safe(err error) error {
	if err == nil {
		return nil
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		err = file.Err // the path is said already
	}
	return fmt.Errorf("%s: %w; the %d rows before are kept, run again to go on", w.path, err, w.done.counts.Rows)
}
