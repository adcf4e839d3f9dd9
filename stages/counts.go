package stages

import "tfbatch/internal/row"

// Counts is what a job came to. All of it is fixed by the input and the job.
type Counts struct {
	Lines            int64                `json:"lines"`
	Blank            int64                `json:"blank_lines"`
	Skipped          int64                `json:"skipped_duplicates"`
	Rows             int64                `json:"rows"`
	Errors           int64                `json:"error_rows"`
	Replies          int64                `json:"replies"`
	PromptTokens     int64                `json:"prompt_tokens"`
	CompletionTokens int64                `json:"completion_tokens"`
	ByFinish         map[row.Finish]int64 `json:"replies_by_finish"`
	ByCode           map[row.Code]int64   `json:"errors_by_code"`
}

func newCounts() Counts {
	return Counts{ByFinish: map[row.Finish]int64{}, ByCode: map[row.Code]int64{}}
}

// add joins what read counted to what became of the rows.
func (c *Counts) add(read *Counts) {
	c.Lines, c.Blank, c.Skipped = read.Lines, read.Blank, read.Skipped
}
