package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// ErrUneven is why New refuses to draft: a row gets other logits where other rows run beside it, so a guess
// could change a reply. Without guesses such a device still runs.
var ErrUneven = errors.New("a row's logits depend on the rows beside it")

// even runs a verify window row by row, as plain decoding would, then whole, then on as many lanes as there
// are, and compares every logit by its bits. No lane is running yet, and none remembers it.
func (e *Engine) even(ctx context.Context) error {
	n := min(e.window, e.cfg.Context)
	var alone []float32
	for pos := range n {
		logits, err := e.probe(ctx, 1, pos, pos+1)
		if err != nil {
			return err
		}
		alone = append(alone, logits...)
	}
	for _, lanes := range []int{1, min(e.cfg.Lanes, e.cfg.Pages)} {
		logits, err := e.probe(ctx, lanes, 0, n)
		if err != nil {
			return err
		}
		for i, x := range logits {
			if want := alone[i%len(alone)]; math.Float32bits(x) != math.Float32bits(want) {
				return fmt.Errorf("device %s: logit %d of row %d is %v among %d rows and %v alone: %w; turn drafting off",
					e.dev.Name(), i%e.info.Vocab, i/e.info.Vocab, x, lanes*n, want, ErrUneven)
			}
		}
	}
	return nil
}

// probe runs positions from..to-1 of a made text on some lanes, a page each, and returns all logits.
func (e *Engine) probe(ctx context.Context, lanes, from, to int) ([]float32, error) {
	b := &model.Batch{Rows: backend.Rows{Pages: make([][]int32, e.cfg.Lanes)}}
	for lane := range lanes {
		b.Rows.Pages[lane] = []int32{int32(lane)}
		for pos := from; pos < to; pos++ {
			b.Heads = append(b.Heads, int32(len(b.IDs)))
			b.IDs = append(b.IDs, int32((pos*7919+1)%e.info.Vocab)) // any ids do
			b.Rows.Lane = append(b.Rows.Lane, int32(lane))
			b.Rows.Pos = append(b.Rows.Pos, int32(pos))
		}
	}
	logits := make([]float32, len(b.IDs)*e.info.Vocab)
	p := e.dev.Begin()
	p.Read(logits, e.state.Forward(p, b).Logits)
	return logits, p.Commit(ctx)
}
