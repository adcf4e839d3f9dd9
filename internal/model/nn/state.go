package nn

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// state is the memory of running lanes and the scratch that every forward works in.
type state struct {
	on    *bound
	shape model.Shape
	kv    backend.KV
	conv  backend.Conv
	rope  backend.Buffer // [positions, Dim]
	all   scratch        // of shape.Rows rows
	front []int32        // by lane: the position after the last row it had
}

func newState(a *arena, b *bound, s model.Shape) *state {
	c := b.config
	return &state{
		on:    b,
		shape: s,
		kv:    a.kv(backend.KVShape{Layers: c.count(model.FullAttention), Pages: s.Pages, Heads: c.KV, Dim: c.Dim, F32: s.KVF32}),
		conv:  a.conv(backend.ConvShape{Layers: c.count(model.ShortConv), Lanes: s.Lanes, Channels: c.Hidden, Kernel: c.Kernel, Ring: s.Window + c.Kernel}),
		rope:  a.buffer(b.positions(s), c.Dim),
		all:   newScratch(a, c, s),
		front: make([]int32, s.Lanes),
	}
}

// Forward records one forward of b on p. What it returns is good until the next one.
func (s *state) Forward(p backend.Pass, b *model.Batch) model.Out {
	if len(b.IDs) > s.shape.Rows || len(b.Heads) > s.shape.Heads {
		panic(fmt.Sprintf("nn: %d rows and %d heads in a state of %d and %d", len(b.IDs), len(b.Heads), s.shape.Rows, s.shape.Heads))
	}
	s.advance(b.Rows)
	return s.on.decoder.forward(newForward(p, s, b))
}

// advance notes how far every lane has come. A convolution remembers as far back as the verify window:
// a lane that goes back further, or leaps ahead, would read what is no longer there, unless it starts anew.
func (s *state) advance(r backend.Rows) {
	for i, lane := range r.Lane {
		first := i == 0 || r.Lane[i-1] != lane
		back := s.front[lane] - r.Pos[i]
		if first && s.conv != nil && r.Pos[i] != 0 && (back < 0 || back >= int32(s.shape.Window)) {
			panic(fmt.Sprintf("nn: lane %d goes from position %d to %d with a window of %d", lane, s.front[lane], r.Pos[i], s.shape.Window))
		}
		s.front[lane] = r.Pos[i] + 1
	}
}
