// Package qwen3 is the family of Qwen3's dense models: Llama's layers, with a norm on every query and key
// head (architecture Qwen3ForCausalLM).
package qwen3

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := nn.ReadQwen3(s)
	blocks := nn.LlamaBlock{HeadNorms: true, AttentionBias: s.Config.BoolOr(false, "attention_bias")}
	return nn.Open(s, c, func(p *model.Planner) *nn.Decoder { return nn.PlanLlama(p, &c, blocks) })
}
