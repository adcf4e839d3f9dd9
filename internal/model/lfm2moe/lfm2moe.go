// Package lfm2moe is the family of LFM2's sparse models: the operators of package lfm2, and a mixture
// of experts for a feed-forward in all but the lowest layers (architecture Lfm2MoeForCausalLM).
package lfm2moe

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// config is what config.json says, checked.
type config struct {
	nn.Config
	dense      int  // num_dense_layers: the layers below have a dense feed-forward
	expertBias bool // use_expert_bias
}

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := readConfig(s)
	return nn.Open(s, c.Config, func(p *model.Planner) *nn.Decoder { return plan(p, &c) })
}

func readConfig(s model.Source) config {
	f := s.Config
	c := config{Config: nn.ReadLFM2(s), expertBias: f.BoolOr(true, "use_expert_bias")}
	c.dense = f.IntOr(2, 0, c.Layers, "num_dense_layers")
	if c.dense > 0 {
		c.FF = f.Int(1, model.MaxWidth, "intermediate_size")
	}
	if c.dense < c.Layers {
		c.MoE = readExperts(f)
	}
	return c
}

func plan(p *model.Planner, c *config) *nn.Decoder {
	return nn.PlanLFM2(p, &c.Config, func(at string, layer int) nn.Layer {
		if layer < c.dense {
			return nn.PlanFFN(p, &c.Config, at, nn.LFM2FFN(p, at), false)
		}
		return nn.PlanMoE(p, &c.Config, at, nn.LFM2FFN(p, at), c.expertBias)
	})
}

// maxScale is far from any routed_scaling_factor in use (1 to 16), and from where it would overflow.
const maxScale = 1 << 10

func readExperts(f *model.Fields) nn.Experts {
	e := nn.ReadExperts(f)
	e.Normalize = f.BoolOr(true, "norm_topk_prob")
	e.Scale = float32(f.FloatOr(1, 0x1p-10, maxScale, "routed_scaling_factor"))
	return e
}
