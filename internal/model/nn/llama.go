package nn

import (
	"fmt"

	"tfbatch/internal/model"
)

// What the families descended from Llama have in common: attention in every layer, a dense gated
// feed-forward, and the names of their tensors.

// ReadLlama reads config.json.
func ReadLlama(s model.Source, thetaAbsent float64) Config {
	c := ReadConfig(s, Keys{
		Eps:         []string{"rms_norm_eps"},
		EpsAbsent:   1e-6,
		ThetaAbsent: thetaAbsent,
		Types:       []string{model.FullAttention},
	})
	c.FF = s.Config.Int(1, model.MaxWidth, "intermediate_size")
	return c
}

// LlamaBlocks is how the blocks of a family differ from one another's.
type LlamaBlocks struct {
	HeadNorms             bool // q_norm and k_norm
	AttentionBias, FFBias bool
}

// Plan plans all blocks of a model.
func (d LlamaBlocks) Plan(p *model.Planner, c *Config) []Block {
	names := AttentionNames{Out: "o_proj"}
	if d.HeadNorms {
		names.QNorm, names.KNorm = "q_norm", "k_norm"
	}
	blocks := make([]Block, c.Layers)
	for l := range blocks {
		at, b := fmt.Sprintf("model.layers.%d.", l), &blocks[l]
		p.Vector(&b.MixerNorm, model.Part{Tensor: at + "input_layernorm.weight", Rows: c.Hidden})
		p.Vector(&b.FFNNorm, model.Part{Tensor: at + "post_attention_layernorm.weight", Rows: c.Hidden})
		b.Mixer = PlanAttention(p, c, at+"self_attn.", names, d.AttentionBias, l)
		b.FFN = PlanFFN(p, c, at+"mlp.", FFNNames{Gate: "gate_proj", Up: "up_proj", Down: "down_proj"}, d.FFBias)
	}
	return blocks
}
