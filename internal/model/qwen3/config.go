// Package qwen3 is the family of Qwen3's dense models: Llama's layers, with a norm on every query and key
// head (architecture Qwen3ForCausalLM).
package qwen3

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// config is what config.json says, checked.
type config struct {
	nn.Config
	bias bool // attention_bias
}

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := readConfig(s)
	if err := s.Config.Err(); err != nil {
		return nil, err
	}
	return nn.Open(s, c.Config, func(p *model.Planner) nn.Network { return plan(p, &c) })
}

// readConfig asks for rope_theta and head_dim by name: implementations differ in what their absence means.
func readConfig(s model.Source) config {
	s.Config.Int(2, model.MaxHeadDim, "head_dim")
	return config{Config: nn.ReadLlama(s, 0), bias: s.Config.BoolOr(false, "attention_bias")}
}
