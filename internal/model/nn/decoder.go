package nn

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Decoder is the graph of every family: residual blocks between two ends. A family says what they are made of.
type Decoder struct {
	ends   ends
	blocks []Block
}

// Block is a residual block that norms before each half: the mixer mixes rows along their lane, the
// feed-forward takes each by itself.
type Block struct {
	MixerNorm, FFNNorm backend.Buffer // [1, Hidden]
	Mixer, FFN         Layer
}

// Layer is one half of a block: it reads x [rows, Hidden] and returns what the residual stream gains, in
// scratch that the next layer overwrites.
type Layer interface {
	apply(f *forward, x backend.Buffer) backend.Buffer
}

// PlanDecoder plans the two ends and lets block plan each block, whose tensors are named from at on.
func PlanDecoder(p *model.Planner, c *Config, finalNorm string, block func(b *Block, at string, layer int)) *Decoder {
	d := &Decoder{blocks: make([]Block, c.Layers)}
	d.ends.plan(p, c, finalNorm)
	for l := range d.blocks {
		block(&d.blocks[l], fmt.Sprintf("model.layers.%d.", l), l)
	}
	return d
}

// forward runs the rows of a batch through the blocks, and those whose logits are wanted through the head.
func (d *Decoder) forward(f *forward) model.Out {
	h := f.embed(&d.ends) // [rows, Hidden]
	for l, b := range d.blocks {
		f.add(h, b.Mixer.apply(f, f.norm(h, b.MixerNorm)))
		f.add(h, b.FFN.apply(f, f.norm(h, b.FFNNorm)))
		f.tap(h, l)
	}
	return f.head(h, &d.ends)
}
