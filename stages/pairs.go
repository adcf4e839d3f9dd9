package stages

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// Pair is a row of a record: what was asked and what came of it.
type Pair struct {
	ID      string
	Index   int64
	Prompt  row.Prompt // with the job's system message in it
	IDs     []int32    // of the prompt; nil unless the rows have them
	Replies []PairReply
	Error   row.Code // empty: it has replies
	Message string   // of the error
}

// PairReply is one reply of a row.
type PairReply struct {
	Text                      string
	IDs                       []int32 // nil unless the rows have them
	Seed                      uint64
	Sample                    int
	PromptTokens, Tokens      int
	PromptSHA256, TokenSHA256 row.Digest
	Finish                    row.Finish
}

// Pairs hands out the rows of a record beside their prompts, in the order of the input, which must be what it was.
// [ErrRecord] is in the error of a record that does not fit it.
func (r *Record) Pairs(ctx context.Context, each func(*Pair) error) error {
	if err := r.sameInput(); err != nil {
		return err
	}
	recorded, err := r.rows()
	if err != nil {
		return err
	}
	defer recorded.close()
	window := semaphore.NewWeighted(windowBytes)
	read := &reader{job: &r.Job, admit: ctx, window: window, meter: &Meter{}}
	join := func(ctx context.Context, in <-chan *row.Row, _ chan<- *row.Row) error {
		for asked := range in {
			p, err := join(asked, recorded)
			if err == nil {
				err = each(p)
			}
			if err != nil {
				return err
			}
			window.Release(asked.Cost)
		}
		return nil
	}
	err = pipeline.Run(ctx, queue, read.stage(), pipeline.Stage[*row.Row]{Name: "join", Workers: 1, Do: join})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// join puts the next recorded row to what was asked.
func join(asked *row.Row, recorded *recordedRows) (*Pair, error) {
	was, err := recorded.next()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the record ends before row %d of the input", ErrRecord, asked.Index)
	}
	if err != nil {
		return nil, err
	}
	if was.ID != asked.ID {
		return nil, fmt.Errorf("%w: row %d is %q, it was %q", ErrRecord, asked.Index, clip(asked.ID), clip(was.ID))
	}
	p := was.pair()
	p.Index, p.Prompt = asked.Index, asked.Prompt
	return p, nil
}

// pair is the row without its prompt.
func (r *recordedRow) pair() *Pair {
	p := &Pair{ID: r.ID, IDs: r.Response.Body.PromptIDs}
	if r.Error != nil {
		p.Error, p.Message = r.Error.Code, r.Error.Message
		if r.Place != nil {
			p.Index = r.Place.Row
		}
		return p
	}
	for i := range r.Response.Body.Choices {
		c := &r.Response.Body.Choices[i]
		p.Index = c.Receipt.Row
		p.Replies = append(p.Replies, PairReply{
			Text: c.text(), IDs: c.TokenIDs, Seed: c.Receipt.Seed, Sample: c.Receipt.Sample,
			PromptTokens: c.Receipt.PromptTokens, Tokens: c.Receipt.CompletionTokens,
			PromptSHA256: c.Receipt.PromptSHA256, TokenSHA256: c.Receipt.TokenSHA256, Finish: c.Receipt.Finish,
		})
	}
	return p
}

// Facts is what the card of a dataset says of the record that it is made of.
type Facts struct {
	Version, Arithmetic string
	Model, Arch         string
	Shards              []FileDigest
	Drafter             string // its path; empty: none
	Input               string
	Sampling            jobs.Sampling
	JobSHA256           string
	Root                row.Digest
	Counts              Counts
}

// Facts reads them from the manifest.
func (r *Record) Facts() Facts {
	m := &r.manifest
	f := Facts{
		Version: m.Version, Arithmetic: m.Arithmetic, Model: shortName(r.Job.Model.Path.Name), Arch: m.Model.Arch, Shards: m.Model.Shards,
		Input: m.Input.Path, Sampling: r.Job.Sampling, JobSHA256: m.JobSHA256, Root: m.Root, Counts: m.Counts,
	}
	if d := m.Volatile.Drafting; d != nil && d.Drafter != nil {
		f.Drafter = d.Drafter.Path
	}
	return f
}

// Files are the digests of the job's files.
func (r *Record) Files() []FileDigest { return r.manifest.Files }
