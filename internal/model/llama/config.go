// Package llama is the family of Llama and of the many models built like it, SmolLM2 for one
// (architecture LlamaForCausalLM).
package llama

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// config is what config.json says, checked.
type config struct {
	nn.Config
	attentionBias, ffBias bool
}

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := readConfig(s)
	if err := s.Config.Err(); err != nil {
		return nil, err
	}
	return nn.Open(s, c.Config, func(p *model.Planner) nn.Network { return plan(p, &c) })
}

func readConfig(s model.Source) config {
	return config{
		Config:        nn.ReadLlama(s, 1e4),
		attentionBias: s.Config.BoolOr(false, "attention_bias"),
		ffBias:        s.Config.BoolOr(false, "mlp_bias"),
	}
}
