package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/pipeline"
)

// Replay makes recorded replies once more, row after row in the order of the input, one at
// a time and without guesses, and ends at the first that differs.
type Replay struct {
	Record  *Record
	Hashes  *Hashes // of the record, without a problem
	Sample  Sample
	Model   Model
	Encoder *Encoder
	Engine  Engine // one lane, no drafter
	Margin  func(ctx context.Context, ids []int32) (float32, error)
}

// Replayed is what a replay has made.
type Replayed struct {
	Rows       int64       `json:"rows"`
	Replies    int64       `json:"replies"`
	Tokens     int64       `json:"tokens"`
	Difference *Difference `json:"difference"` // nil: all are equal
}

// Run replays. A [Difference] is an error too; [ErrRecord] is in the error of a record that
// cannot be compared.
func (p *Replay) Run(ctx context.Context) (*Replayed, error) {
	out := &Replayed{}
	if err := p.Record.sameInput(); err != nil {
		return out, err
	}
	recorded, err := p.Record.rows()
	if err != nil {
		return out, err
	}
	defer recorded.close()
	window := semaphore.NewWeighted(windowBytes)
	read := &reader{job: &p.Record.Job, admit: ctx, window: window, meter: &Meter{}}
	c := &comparer{Replay: p, recorded: recorded, window: window, bar: p.Sample.bar(p.Hashes.draws), out: out}
	err = pipeline.Run(ctx, queue, read.stage(), p.Encoder.stage(runtime.GOMAXPROCS(0)),
		pipeline.Stage[*row.Row]{Name: "compare", Workers: 1, Do: c.do})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && c.next != p.Hashes.Rows {
		err = fmt.Errorf("%w: the input has %d rows, the record %d", ErrRecord, c.next, p.Hashes.Rows)
	}
	errors.As(err, &out.Difference)
	return out, err
}

// comparer puts the rows of the input back into order and holds each to its record.
type comparer struct {
	*Replay
	recorded *recordedRows
	window   *semaphore.Weighted
	bar      uint64
	held     map[int64]*row.Row
	next     int64
	out      *Replayed
}

func (c *comparer) do(ctx context.Context, in <-chan *row.Row, _ chan<- *row.Row) error {
	c.held = map[int64]*row.Row{}
	for r := range in {
		c.held[r.Index] = r
		for c.held[c.next] != nil {
			now := c.held[c.next]
			delete(c.held, c.next)
			if err := c.row(ctx, now); err != nil {
				return err
			}
			c.next++
			c.window.Release(now.Cost)
		}
	}
	return nil
}

func (c *comparer) row(ctx context.Context, r *row.Row) error {
	was, err := c.recorded.next()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the record ends before row %d of the input", ErrRecord, r.Index)
	}
	if err != nil {
		return err
	}
	switch {
	case was.ID != r.ID:
		return fmt.Errorf("%w: row %d is %q, it was %q", ErrRecord, r.Index, clip(r.ID), clip(was.ID))
	case was.Error != nil:
		return nil
	case r.Err != nil:
		return fmt.Errorf("%w: row %q has a reply, its prompt fails now: %w", ErrRecord, clip(r.ID), r.Err)
	case !picked(r.ID, c.bar):
		return nil
	case len(was.Response.Body.Choices) != r.Sampling.N:
		return fmt.Errorf("%w: row %q has %d replies, %d were asked for", ErrRecord, clip(r.ID), len(was.Response.Body.Choices), r.Sampling.N)
	}
	c.out.Rows++
	for sample := range was.Response.Body.Choices {
		if err := c.choice(ctx, r, sample, &was.Response.Body.Choices[sample]); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparer) choice(ctx context.Context, r *row.Row, sample int, was *recordedChoice) error {
	if was.Receipt.PromptSHA256 != r.PromptHash {
		return fmt.Errorf("%w: row %q: the prompt's ids hash to %v, they were %v", ErrRecord, clip(r.ID), r.PromptHash, was.Receipt.PromptSHA256)
	}
	plain, err := redo(ctx, c.Engine, newRequest(&c.Model, r, sample))
	if err != nil {
		return err
	}
	c.out.Replies++
	c.out.Tokens += int64(len(plain))
	if row.TokenHash(plain) == was.Receipt.TokenSHA256 {
		return nil
	}
	d := &Difference{Row: r.Index, ID: r.ID, Sample: sample}
	if ids, ok := c.recover(r, was, plain); ok {
		d.Position = firstDifference(ids, plain)
		d.Recorded = token(ids, d.Position)
	} else {
		d.Position = c.textDifference(was.text(), plain)
		d.Recorded = unknownToken
	}
	d.Plain = token(plain, d.Position)
	d.Margin, err = c.Margin(ctx, behind(r.Tokens, plain, d.Position))
	return errors.Join(d, err)
}

// recover finds the recorded ids again, which a row does not hold: its text is encoded, and
// the hash tells whether that gave them.
func (c *comparer) recover(r *row.Row, was *recordedChoice, plain []int32) ([]int32, bool) {
	text := was.text()
	endings := append([]string{""}, r.Sampling.Stop...)
	ends := append(append([]int32{noToken}, c.Model.EOS...), r.Sampling.StopIDs...)
	if len(plain) > 0 {
		ends = append(ends, plain[len(plain)-1])
	}
	for _, ending := range endings {
		ids := c.Model.Tokenizer.Encode(text + ending)
		for _, end := range ends {
			try := ids
			if end != noToken {
				try = append(slices.Clone(ids), end)
			}
			if row.TokenHash(try) == was.Receipt.TokenSHA256 {
				return try, true
			}
		}
	}
	return nil, false
}

// textDifference is the first token of plain whose text is not in text, its length when
// there is none.
func (c *comparer) textDifference(text string, plain []int32) int {
	for i := range plain {
		part := c.Model.Tokenizer.DecodeVisible(plain[:i+1])
		if !strings.HasPrefix(text, strings.TrimRight(part, "\ufffd")) { // a rune may be cut
			return i
		}
	}
	return len(plain)
}

// Sample is which rows to take: Rows of them, or Percent, or all. They are chosen by their
// ids, the same ones every time.
type Sample struct {
	Rows    int64
	Percent float64
}

// ParseSample reads "all", "5%" or "20".
func ParseSample(text string) (Sample, error) {
	if text == "all" {
		return Sample{}, nil
	}
	if digits, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(digits, 64)
		if err == nil && p > 0 && p <= 100 {
			return Sample{Percent: p}, nil
		}
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return Sample{Rows: n}, nil
	}
	return Sample{}, fmt.Errorf("is %q, want all, a share such as 1%%, or a number of rows", text)
}

// bar is what the draws of the sample do not pass. At least one row is below it.
func (s Sample) bar(draws []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(draws))
	switch {
	case len(sorted) == 0 || s == Sample{} || s.Rows >= int64(len(sorted)):
		return math.MaxUint64
	case s.Rows > 0:
		return sorted[s.Rows-1]
	}
	return max(share(s.Percent), sorted[0])
}
