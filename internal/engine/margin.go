package engine

import (
	"context"
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Margin is how far the two largest logits behind ids are apart, from a plain run over ids
// in forwards of up to chunk rows. It is for a report of a difference: it takes a state of
// its own, which only the device's end frees.
func Margin(ctx context.Context, dev backend.Device, m model.Model, c Config, ids []int32) (float32, error) {
	c = Config{Lanes: 1, Pages: (len(ids) + backend.PageKeys - 1) / backend.PageKeys, Chunk: c.Chunk, Context: c.Context, KVF32: c.KVF32}
	state, err := m.NewState(c.Shape())
	if err != nil {
		return 0, fmt.Errorf("margin behind %d ids: %w", len(ids), err)
	}
	pages := make([]int32, c.Pages)
	for i := range pages {
		pages[i] = int32(i)
	}
	logits := make([]float32, m.Info().Vocab)
	for from := 0; from < len(ids); from += c.Chunk {
		b := &model.Batch{Rows: backend.Rows{Pages: [][]int32{pages}}}
		for pos := from; pos < min(from+c.Chunk, len(ids)); pos++ {
			b.IDs = append(b.IDs, ids[pos])
			b.Rows.Lane = append(b.Rows.Lane, 0)
			b.Rows.Pos = append(b.Rows.Pos, int32(pos))
		}
		b.Heads = []int32{int32(len(b.IDs) - 1)}
		p := dev.Begin()
		p.Read(logits, state.Forward(p, b).Logits)
		if err := p.Commit(ctx); err != nil {
			return 0, fmt.Errorf("margin behind %d ids: %w", len(ids), err)
		}
	}
	return twoLargest(logits), nil
}

// twoLargest is the difference of the two largest of at least two logits.
func twoLargest(logits []float32) float32 {
	first, second := logits[0], logits[1]
	if second > first {
		first, second = second, first
	}
	for _, x := range logits[2:] {
		switch {
		case x > first:
			first, second = x, first
		case x > second:
			second = x
		}
	}
	return first - second
}
