package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// ErrUneven is why New refuses to draft: a row gets other logits where other rows run beside it, so a guess
// could change a reply. Without guesses such a device still runs.
var ErrUneven = errors.New("a row's logits depend on the rows beside it")

// even runs a verify window row by row, as plain decoding would, then whole, then on as many lanes as there
// are, and compares every logit by its bits. No lane is running yet, and none remembers it. The policy hears the
// times.
func (e *Engine) even(ctx context.Context) error {
	n := min(e.window, e.cfg.Context)
	var alone []float32
	least := time.Duration(math.MaxInt64) // of a row alone: the first ones find the device cold
	for pos := range n {
		logits, took, err := e.probe(ctx, 1, pos, pos+1)
		if err != nil {
			return err
		}
		alone, least = append(alone, logits...), min(least, took)
	}
	e.policy.timed(1, least.Seconds())
	for _, lanes := range []int{1, min(e.cfg.Lanes, e.cfg.Pages)} {
		logits, took, err := e.probe(ctx, lanes, 0, n)
		if err != nil {
			return err
		}
		_, again, err := e.probe(ctx, lanes, 0, n) // a time too long would be believed, as nothing so wide would run any more
		if err != nil {
			return err
		}
		e.policy.timed(lanes*n, min(took, again).Seconds())
		for i, x := range logits {
			if want := alone[i%len(alone)]; math.Float32bits(x) != math.Float32bits(want) {
				return fmt.Errorf("device %s: logit %d of row %d is %v among %d rows and %v alone: %w; turn drafting off",
					e.dev.Name(), i%e.info.Vocab, i/e.info.Vocab, x, lanes*n, want, ErrUneven)
			}
		}
	}
	return nil
}

// probe runs positions from..to-1 of a made text on some lanes, and returns all logits and the time.
func (e *Engine) probe(ctx context.Context, lanes, from, to int) (logits []float32, took time.Duration, err error) {
	b := e.made(lanes, from, to)
	logits = make([]float32, len(b.IDs)*e.info.Vocab)
	start := e.now()
	p := e.dev.Begin()
	p.Read(logits, e.state.Forward(p, b).Logits)
	err = p.Commit(ctx)
	return logits, e.now().Sub(start), err
}

// made is positions from..to-1 of a made text on some lanes, a page each. All logits are wanted.
func (e *Engine) made(lanes, from, to int) *model.Batch {
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
	return b
}
