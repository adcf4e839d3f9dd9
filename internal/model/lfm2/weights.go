package lfm2

import (
	"fmt"

	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// network is the graph with its weights.
type network struct {
	ends   *nn.Ends
	blocks []nn.Block
}

// Ends is what a drafter borrows.
func (n *network) Ends() *nn.Ends { return n.ends }

func plan(p *model.Planner, c *nn.Config) *network {
	n := &network{ends: nn.PlanEnds(p, c, nn.LFM2FinalNorm), blocks: make([]nn.Block, c.Layers)}
	for l := range n.blocks {
		at, b := fmt.Sprintf("model.layers.%d.", l), &n.blocks[l]
		nn.PlanLFM2Mixer(p, c, b, at, l)
		b.FFN = nn.PlanFFN(p, c, at+"feed_forward.", nn.LFM2FFN(), false)
	}
	return n
}
