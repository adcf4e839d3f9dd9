package stages

import (
	"context"

	"tfbatch/internal/row"
	"tfbatch/pipeline"
)

// finish turns ids into text and hashes, away from the engine's goroutine.
func finish(t Tokenizer, workers int) pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "finish", Workers: workers,
		Do: func(ctx context.Context, in <-chan *row.Row, out chan<- *row.Row) error {
			for r := range in {
				if r.Err == nil {
					finishRow(t, r)
				}
				if err := pipeline.Send(ctx, out, r); err != nil {
					return err
				}
			}
			return nil
		}}
}

// finishRow decodes each reply as a whole, so that no rune is split, and cuts at a stop
// string what the engine stopped for. The ids stay: the token that completed it is retained.
func finishRow(t Tokenizer, r *row.Row) {
	for i := range r.Choices {
		c := &r.Choices[i]
		c.Text = t.DecodeVisible(c.Tokens)
		if c.Finish == row.StopString {
			c.Text = cutStop(c.Text, r.Sampling.Stop)
		}
		c.TokenHash = row.TokenHash(c.Tokens)
	}
}
