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

// row counts what became of r.
func (c *Counts) row(r *row.Row) {
	c.Rows++
	if r.Err != nil {
		c.Errors++
		c.ByCode[r.Err.Code]++
		return
	}
	c.PromptTokens += int64(len(r.Tokens))
	for _, choice := range r.Choices {
		c.Replies++
		c.CompletionTokens += int64(len(choice.Tokens))
		c.ByFinish[choice.Finish]++
	}
}

// add joins what read counted to what write did.
func (c *Counts) add(read *Counts) {
	c.Lines, c.Blank, c.Skipped = read.Lines, read.Blank, read.Skipped
}
