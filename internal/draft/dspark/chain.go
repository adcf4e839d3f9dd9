package dspark

import (
	"context"
	"fmt"
	"math"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
)

// leastReach is how likely a guess and all before it must be for the chain to go on behind it. A further link
// and a verified row cost more than that share of a token wherever it was measured. With the builtin pair it
// takes 3.9 links of 9, for 1.4 in 100 tokens of a round.
const leastReach = 0.05

// chain is the sequential half of a round. Link j of every block that goes so far is one small pass: the
// guess before it shifts the scores of its row.
type chain struct {
	blocks []*block
	prev   []int32   // by block: the token before
	from   []int32   // by block: its head row
	scores []float32 // [blocks, Vocab]
	markov []float32 // [blocks, rank]
}

// link runs the chain; p holds the forward and takes the first link along.
func (d *Drafter) link(ctx context.Context, p backend.Pass) error {
	for j := 0; d.next(j); j++ {
		if j > 0 {
			p = d.dev.Begin()
		}
		d.shift(p)
		if err := p.Commit(ctx); err != nil {
			return fmt.Errorf("drafter: link %d of %d blocks: %w", j, len(d.round.chain.blocks), err)
		}
		if err := d.pick(j); err != nil {
			return err
		}
	}
	return nil
}

// next collects the blocks that have a link j and reports whether there are any.
func (d *Drafter) next(j int) bool {
	c := &d.round.chain
	c.blocks, c.prev, c.from = c.blocks[:0], c.prev[:0], c.from[:0]
	for i := range d.round.blocks {
		b := &d.round.blocks[i]
		if j >= b.most {
			continue
		}
		prev := d.lanes[b.ask.Lane].last
		if j > 0 {
			prev = b.ask.IDs[len(b.ask.IDs)-1]
		}
		c.blocks, c.prev, c.from = append(c.blocks, b), append(c.prev, prev), append(c.from, b.head+int32(j))
	}
	return len(c.blocks) > 0
}

// shift scores one row of each block: base + w2·w1[prev].
func (d *Drafter) shift(p backend.Pass) {
	c := &d.round.chain
	n := len(c.blocks)
	markov, score, chosen := d.markov.Top(n), d.score.Top(n), d.chosen.Top(n)
	p.Embed(markov, d.w1, c.prev)                            // [blocks, rank]
	p.MatMul(score, markov, d.w2)                            // [blocks, Vocab]
	p.Gather(chosen, d.base.Top(len(d.round.heads)), c.from) // [blocks, Vocab]
	p.Add(chosen, chosen, score)
	c.scores = grown(c.scores, n*d.cfg.vocab)
	p.Read(c.scores, chosen)
	if d.cfg.confidence {
		c.markov = grown(c.markov, n*d.cfg.rank)
		p.Read(c.markov, markov)
	}
}

// pick takes the best token of every row as guess j.
func (d *Drafter) pick(j int) error {
	c := &d.round.chain
	for i, b := range c.blocks {
		id, ok := best(c.scores[i*d.cfg.vocab:][:d.cfg.vocab])
		if !ok {
			return fmt.Errorf("drafter: scores of guess %d of lane %d: %w", j, b.ask.Lane, draft.ErrNonfinite)
		}
		b.ask.IDs = append(b.ask.IDs, id)
		if !d.cfg.confidence {
			continue
		}
		chance := d.chance(d.round.hidden[int(c.from[i])*d.cfg.hidden:][:d.cfg.hidden], c.markov[i*d.cfg.rank:][:d.cfg.rank])
		if chance != chance {
			return fmt.Errorf("drafter: confidence of guess %d of lane %d: %w", j, b.ask.Lane, draft.ErrNonfinite)
		}
		b.ask.Chance = append(b.ask.Chance, chance)
		if b.reach *= chance; b.reach < d.least {
			b.most = j + 1 // the end of this chain
		}
	}
	return nil
}

// best is the index of the largest score, the lowest of equals; false where any is a NaN or an infinity.
func best(scores []float32) (int32, bool) {
	const exponent, lowest = 0x7f80_0000, 0x0080_0000
	at, full := 0, uint32(0)
	top := scores[0]
	for i, s := range scores {
		full |= math.Float32bits(s)&exponent + lowest // reaches the sign bit where the exponent is full
		if s > top {
			at, top = i, s
		}
	}
	return int32(at), full>>31 == 0
}

// confidence is the confidence head on the host: one output is no work for a device.
type confidence struct {
	weights []float32 // of the hidden row, then of the Markov embedding
	bias    float32
}

// chance estimates the probability that the token chosen from a row is right if those before it are.
func (d *Drafter) chance(hidden, markov []float32) float32 {
	sum := float64(d.sure.bias)
	for i, w := range d.sure.weights[:len(hidden)] {
		sum += float64(w) * float64(hidden[i])
	}
	for i, w := range d.sure.weights[len(hidden):] {
		sum += float64(w) * float64(markov[i])
	}
	return backend.Sigmoid(float32(sum))
}

// readConfidence fetches the head from the device, where the loader put it.
func (d *Drafter) readConfidence(ctx context.Context) error {
	if !d.cfg.confidence {
		return nil
	}
	d.sure.weights = make([]float32, d.cfg.confidenceWidth())
	bias := make([]float32, 1)
	p := d.dev.Begin()
	p.Read(d.sure.weights, d.confidence)
	p.Read(bias, d.bias)
	if err := p.Commit(ctx); err != nil {
		return fmt.Errorf("read the confidence head: %w", err)
	}
	d.sure.bias = bias[0]
	return nil
}
