package stages

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"slices"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// Survey is what a job's input holds, without a model: rows, errors that are known before
// generation, and prompt lengths.
type Survey struct {
	Input        row.Digest         `json:"sha256"`
	Lines        int64              `json:"lines"`
	Blank        int64              `json:"blank_lines"`
	Skipped      int64              `json:"skipped_duplicates"`
	Rows         int64              `json:"rows"`
	Errors       int64              `json:"error_rows"`
	ByCode       map[row.Code]int64 `json:"errors_by_code"`
	First        []RowError         `json:"first_errors"`
	PromptTokens int64              `json:"prompt_tokens"`
	Shortest     int                `json:"shortest_prompt"`
	Longest      int                `json:"longest_prompt"`
	MaxNewTokens int64              `json:"max_completion_tokens"` // if every reply ran to its limit
}

// RowError is an error row of the input.
type RowError struct {
	Line    int64    `json:"line"`
	ID      string   `json:"custom_id"`
	Code    row.Code `json:"code"`
	Message string   `json:"message"`
}

// maxSurveyErrors is how many errors a survey names; the counts have all of them.
const maxSurveyErrors = 5

// Take reads and encodes every row of the input and writes nothing. keep, if not nil, sees
// each encoded row in no particular order, on one goroutine.
func Take(ctx context.Context, job *jobs.Job, e *Encoder, stdin io.Reader, keep func(*row.Row)) (*Survey, error) {
	window := semaphore.NewWeighted(windowBytes)
	read := &reader{job: job, stdin: stdin, admit: ctx, window: window, meter: &Meter{}}
	s := &Survey{ByCode: map[row.Code]int64{}, First: []RowError{}}
	tally := pipeline.Stage[*row.Row]{Name: "tally", Workers: 1,
		Do: func(_ context.Context, in <-chan *row.Row, _ chan<- *row.Row) error {
			for r := range in {
				s.add(r, e.model.Context)
				if keep != nil && r.Err == nil {
					keep(r)
				}
				window.Release(r.Cost)
			}
			return nil
		}}
	if err := pipeline.Run(ctx, queue, read.stage(), e.stage(runtime.GOMAXPROCS(0)), tally); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.Lines, s.Blank, s.Skipped = read.counts.Lines, read.counts.Blank, read.counts.Skipped
	s.Input = read.digest
	return s, nil
}

func (s *Survey) add(r *row.Row, context int) {
	s.Rows++
	if r.Err != nil {
		s.Errors++
		s.ByCode[r.Err.Code]++
		s.keep(RowError{r.Line, r.ID, r.Err.Code, r.Err.Message})
		return
	}
	n := len(r.Tokens)
	s.PromptTokens += int64(n)
	if s.Shortest == 0 || n < s.Shortest {
		s.Shortest = n
	}
	s.Longest = max(s.Longest, n)
	s.MaxNewTokens += int64(r.Sampling.N) * int64(min(r.Sampling.MaxTokens, context-n))
}

// keep holds on to the errors of the lowest lines: rows come from encode in any order.
func (s *Survey) keep(e RowError) {
	at, _ := slices.BinarySearchFunc(s.First, e.Line, func(have RowError, line int64) int { return cmp.Compare(have.Line, line) })
	s.First = slices.Insert(s.First, at, e)
	s.First = s.First[:min(len(s.First), maxSurveyErrors)]
}
