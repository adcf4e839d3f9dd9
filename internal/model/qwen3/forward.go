package qwen3

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// Forward runs the rows of a batch through the layers, and those whose logits are wanted through the head.
func (n *network) Forward(f *nn.Forward) model.Out {
	h := f.Embed(n.ends) // [rows, Hidden]
	for l := range n.blocks {
		n.blocks[l].Apply(f, h)
		f.Tap(h, l)
	}
	return f.Head(h, n.ends)
}
