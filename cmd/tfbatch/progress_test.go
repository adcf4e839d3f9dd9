package main

import (
	"testing"
	"time"

	"tfbatch/stages"
)

// TestStatusText pins the line, and that the time left is counted in tokens: ten of forty
// rows took 1,000 tokens, those that run have 500 of theirs.
func TestStatusText(t *testing.T) {
	for _, c := range []struct {
		reading stages.Reading
		tokens  int64
		elapsed time.Duration
		want    string
	}{
		{stages.Reading{}, 0, 0, "0/? rows, 0 errors, 0 tokens/s, 8 running"},
		{stages.Reading{Read: 40, Total: 40, Exact: true}, 500, 10 * time.Second, "0/40 rows, 0 errors, 50 tokens/s, 8 running"},
		{stages.Reading{Rows: 10, Errors: 2, CompletionTokens: 1000, Total: 40, Exact: true}, 1500, 10 * time.Second,
			"10/40 rows, 2 errors, 150 tokens/s, 8 running, ETA 17s"},
		{stages.Reading{Rows: 10, CompletionTokens: 1000, Total: 40}, 1500, 10 * time.Second,
			"10/~40 rows, 0 errors, 150 tokens/s, 8 running, ETA 17s"},
		{stages.Reading{Rows: 39, CompletionTokens: 1000, Total: 40, Exact: true}, 1500, 10 * time.Second,
			"39/40 rows, 0 errors, 150 tokens/s, 8 running, ETA 0s"},
	} {
		if got := statusText(c.reading, c.tokens, 8, c.elapsed); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
