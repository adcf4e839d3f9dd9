// Package qwen3moe is the family of Qwen3's sparse models: the attention of package qwen3, and a mixture of
// experts for a feed-forward in all layers or some (architecture Qwen3MoeForCausalLM).
package qwen3moe

import (
	"slices"

	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// config is what config.json says, checked.
type config struct {
	nn.Config
	blocks nn.LlamaBlock
	dense  []int // mlp_only_layers
	step   int   // decoder_sparse_step: of so many layers the last is sparse
}

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := readConfig(s)
	return nn.Open(s, c.Config, func(p *model.Planner) *nn.Decoder { return nn.PlanLlama(p, &c.Config, c.blocks) })
}

func readConfig(s model.Source) *config {
	f := s.Config
	c := &config{Config: nn.ReadQwen3(s), dense: f.Ints("mlp_only_layers"), step: f.IntOr(1, 1, model.MaxLayers, "decoder_sparse_step")}
	for _, l := range c.dense {
		if l < 0 || l >= c.Layers {
			f.Failf("\"mlp_only_layers\" holds %d, not between 0 and %d", l, c.Layers-1)
		}
	}
	c.blocks = nn.LlamaBlock{HeadNorms: true, AttentionBias: f.BoolOr(false, "attention_bias"), Sparse: c.sparse}
	sparse := 0
	for l := range c.Layers {
		if c.sparse(l) {
			sparse++
		}
	}
	if sparse > 0 {
		c.MoE = nn.ReadExperts(f)
		c.MoE.Softmax, c.MoE.Normalize = true, f.BoolOr(false, "norm_topk_prob")
	}
	if sparse == c.Layers {
		c.FF = 0 // intermediate_size is of layers that there are not
	}
	return c
}

// sparse reports whether a layer has experts.
func (c *config) sparse(layer int) bool {
	return !slices.Contains(c.dense, layer) && (layer+1)%c.step == 0
}
