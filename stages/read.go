package stages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// reader makes rows of the lines of a job's input.
type reader struct {
	job    *jobs.Job
	stdin  io.Reader
	admit  context.Context
	window *semaphore.Weighted
	meter  *Meter
	done   *earlierRows // nil: none
	hold   bool         // start no row before every one that is done was seen to be the same
	audit  *Audit       // nil: none
	shard  Shard

	seen   map[[16]byte]struct{} // hashes of the ids so far: an id may be long, a job has millions
	rows   int64
	mine   int64 // of these, rows of the shard
	held   []*row.Row
	counts Counts
	digest row.Digest // of the input as stored
	ended  bool       // the whole input was read
}

func (r *reader) stage() pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "read", Workers: 1, Do: r.do}
}

func (r *reader) do(ctx context.Context, _ <-chan *row.Row, out chan<- *row.Row) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.admit, cancel)() // a stop must not wait for the window
	src, err := openSource(r.job.Input.Path.File, interruptible(ctx, r.stdin))
	if err == nil {
		defer src.close()
		err = r.lines(ctx, src, out)
	}
	if r.admit.Err() != nil { // whatever ended the loop, the run was stopped
		return nil
	}
	if err != nil {
		return err
	}
	r.ended = true
	r.digest, err = src.digest()
	r.meter.readAll(r.rows)
	return err
}

func (r *reader) lines(ctx context.Context, src *source, out chan<- *row.Row) error {
	q := &requests{job: r.job, names: modelNames(r.job.Model)}
	r.seen = map[[16]byte]struct{}{}
	in := newLines(src.text, r.job.Input.MaxLineBytes)
	for limit := r.job.Input.MaxRows; limit == 0 || r.rows < limit; {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return r.end()
		}
		if err != nil {
			return fmt.Errorf("line %d of %s: %w", in.number+1, r.job.Input.Path.Name, err)
		}
		r.counts.Lines++
		if line.blank() {
			r.counts.Blank++
			continue
		}
		next := r.row(q, line)
		if next == nil {
			r.counts.Skipped++
			continue
		}
		if next.Err != nil && r.job.Input.OnBadLine == jobs.OnBadLineStop {
			return fmt.Errorf("line %d of %s: %w", line.number, r.job.Input.Path.Name, next.Err)
		}
		r.rows++
		if err := r.pass(ctx, out, next); err != nil {
			return err
		}
		r.meter.readTo(r.rows, src.read.Load(), src.size)
	}
	return r.end()
}

// pass sends a row on, unless it is done. Rows of an input that is not known to be the same
// wait until all that is done was compared: those of another must not get into the journal.
func (r *reader) pass(ctx context.Context, out chan<- *row.Row, next *row.Row) error {
	if r.shard.has(next.ID) {
		r.mine++
		done, err := r.done.has(next.Index, next.Sum, r.audit.wants(next.ID))
		if err != nil {
			return r.changed(fmt.Sprintf("line %d of %s: %v", next.Line, r.job.Input.Path.Name, err))
		}
		if !done {
			r.held = append(r.held, next)
		}
	}
	if r.hold && r.rows < r.done.count() {
		return nil
	}
	return r.release(ctx, out)
}

// release sends what is held. Each row waits for a place in the window, which write gives back.
func (r *reader) release(ctx context.Context, out chan<- *row.Row) error {
	for _, next := range r.held {
		if err := r.window.Acquire(ctx, next.Cost); err != nil {
			return err
		}
		if err := pipeline.Send(ctx, out, next); err != nil {
			return err
		}
	}
	clear(r.held)
	r.held = r.held[:0]
	return nil
}

// end is the end of the input.
func (r *reader) end() error {
	if n := r.done.count(); r.rows < n {
		return r.changed(fmt.Sprintf("input %s: more than %d rows -> %d", r.job.Input.Path.Name, n-1, r.rows))
	}
	return nil
}

func (r *reader) changed(what string) error { return &Changed{OutputDir(r.job), []string{what}} }

// row makes a row of a line, nil for a second id that the job passes over.
func (r *reader) row(q *requests, l line) *row.Row {
	out := &row.Row{
		Index: r.rows, Line: l.number, Offset: l.offset,
		ID:   fmt.Sprintf("row-%09d", r.rows),
		Cost: min(windowBytes, int64(rowBytes+len(l.data))),
		Sum:  l.sum(),
	}
	if l.data == nil {
		out.Err = fail(row.LineTooLong, "line has %d bytes, at most %d", l.bytes, r.job.Input.MaxLineBytes)
		return out
	}
	object, err := strictObject(l.data)
	if err != nil {
		out.Err = err
		return out
	}
	id, err := q.id(object)
	if id != "" {
		out.ID = id
	}
	duplicate := r.duplicate(out.ID)
	switch {
	case err != nil:
		out.Err = err
	case duplicate && r.job.Input.OnDuplicate == jobs.OnDuplicateSkip:
		return nil
	case duplicate:
		out.Err = fail(row.DuplicateID, "%s %q came before", r.job.Input.IDField, clip(out.ID))
	default:
		out.Err = q.parse(out, object)
	}
	return out
}

// sum is what a later run knows the line by. One that was too long has only its length.
func (l line) sum() lineSum {
	if l.data == nil {
		return lineSum(binary.LittleEndian.AppendUint64(make([]byte, 8), uint64(l.bytes)))
	}
	sum := sha256.Sum256(l.data)
	return lineSum(sum[:])
}

// duplicate notes id and reports whether it was there.
func (r *reader) duplicate(id string) bool {
	sum := sha256.Sum256([]byte(id))
	key := [16]byte(sum[:16])
	if _, ok := r.seen[key]; ok {
		return true
	}
	r.seen[key] = struct{}{}
	return false
}
