package dspark

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// state is the memory of a run: pages of context, and the scratch that every pass works in.
type state struct {
	kv   backend.KV
	rope backend.Buffer // [positions, Dim]
	scratch
}

// scratch are the buffers of a pass. A block row is a row of a block, a head row one of those that become a
// guess, a lane row belongs to one step of the chain.
type scratch struct {
	taps          backend.Buffer // [context, taps·Hidden]
	c             backend.Buffer // [context, Hidden]: context before the stack
	x             backend.Buffer // [block + context, Hidden]: what the projections of a layer read
	qkv, q        backend.Buffer // [block + context, (Q+2·KV)·Dim], [block + context, Q·Dim]
	h, r          backend.Buffer // [block, Hidden]: the residual stream, a layer's result
	attended      backend.Buffer // [block, Q·Dim]
	gateUp, act   backend.Buffer // [block, 2·FF], [block, FF]
	headX, base   backend.Buffer // [head, Hidden], [head, Vocab]: scores before the chain
	markov        backend.Buffer // [lane, rank]: embeddings of the tokens before
	score, chosen backend.Buffer // [lane, Vocab]: the chain's share, then its sum with rows of base
}

// sizes are the sizes that a state follows from.
type sizes struct {
	positions             int // of the rotary table
	context, block, lanes int // most rows of each kind in a pass
	kv                    backend.KVShape
}

func sizesOf(c *config, target model.Info, s Shape) sizes {
	return sizes{
		// A block reaches past the last position of its lane.
		positions: min(target.Context, s.Pages*backend.PageKeys) + c.block,
		context:   contextRows,
		block:     s.Lanes * c.block,
		lanes:     s.Lanes,
		// So a lane may need one page more than the target gives it: a block is shorter than a page.
		kv: backend.KVShape{Layers: c.layers, Pages: s.Pages + s.Lanes, Heads: c.KV, Dim: c.Dim, F32: s.KVF32},
	}
}

// buffer is a buffer to make and where its handle goes.
type buffer struct {
	dst        *backend.Buffer
	rows, cols int
}

// buffers lists every buffer of a state.
func (s *state) buffers(c *config, z sizes) []buffer {
	q, kv := c.Q*c.Dim, c.KV*c.Dim
	return []buffer{
		{&s.rope, z.positions, c.Dim},
		{&s.taps, z.context, c.tapWidth()},
		{&s.c, z.context, c.hidden},
		{&s.x, z.block + z.context, c.hidden},
		{&s.qkv, z.block + z.context, q + 2*kv},
		{&s.q, z.block + z.context, q},
		{&s.h, z.block, c.hidden},
		{&s.r, z.block, c.hidden},
		{&s.attended, z.block, q},
		{&s.gateUp, z.block, 2 * c.ff},
		{&s.act, z.block, c.ff},
		{&s.headX, z.block, c.hidden},
		{&s.base, z.block, c.vocab},
		{&s.markov, z.lanes, c.rank},
		{&s.score, z.lanes, c.vocab},
		{&s.chosen, z.lanes, c.vocab},
	}
}

// footprint is the bytes of all that reserve makes.
func footprint(c *config, z sizes) int64 {
	element := int64(2)
	if z.kv.F32 {
		element = 4
	}
	keys := int64(z.kv.Layers) * int64(z.kv.Pages) * backend.PageKeys
	n := 2 * element * keys * int64(z.kv.Heads) * int64(z.kv.Dim)
	for _, b := range new(state).buffers(c, z) {
		n += 4 * int64(b.rows) * int64(b.cols)
	}
	return n
}

// reserve makes the state on dev.
func (s *state) reserve(dev backend.Device, c *config, z sizes) (err error) {
	if s.kv, err = dev.NewKV(z.kv); err != nil {
		return err
	}
	for _, b := range s.buffers(c, z) {
		if *b.dst, err = dev.NewBuffer(b.rows, b.cols); err != nil {
			return err
		}
	}
	return dev.Write(s.rope, nn.RopeTable(z.positions, c.Dim, model.Rope{Theta: c.theta}))
}
