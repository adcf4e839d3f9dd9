package qwen3

import (
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

func plan(p *model.Planner, c *config) *network {
	blocks := nn.LlamaBlocks{HeadNorms: true, AttentionBias: c.bias}
	return &network{ends: nn.PlanEnds(p, &c.Config, "model.norm.weight"), blocks: blocks.Plan(p, &c.Config)}
}
