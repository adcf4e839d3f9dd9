// Package llama is the family of Llama and of the many models built like it, SmolLM2 for one
// (architecture LlamaForCausalLM).
package llama

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := nn.ReadLlama(s, 1e4)
	blocks := nn.LlamaBlock{
		AttentionBias: s.Config.BoolOr(false, "attention_bias"),
		FFBias:        s.Config.BoolOr(false, "mlp_bias"),
	}
	return nn.Open(s, c, func(p *model.Planner) *nn.Decoder { return nn.PlanLlama(p, &c, blocks) })
}
