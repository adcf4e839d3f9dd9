package nn

import "tfbatch/internal/model"

// What the families descended from Llama have in common: attention in every layer, a gated feed-forward or a
// mixture of them, and the names of their tensors.

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

// ReadQwen3 reads config.json of Qwen3's dense and sparse models. It asks for head_dim and rope_theta by name:
// implementations differ in what their absence means.
func ReadQwen3(s model.Source) Config {
	s.Config.Int(2, model.MaxHeadDim, "head_dim")
	return ReadLlama(s, 0)
}

// LlamaBlock is how the blocks of a family differ from one another's.
type LlamaBlock struct {
	HeadNorms             bool // q_norm and k_norm
	AttentionBias, FFBias bool
	Sparse                func(layer int) bool // which layers have experts; nil for none
}

// PlanLlama plans a decoder of such blocks.
func PlanLlama(p *model.Planner, c *Config, k LlamaBlock) *Decoder {
	names := AttentionNames{Out: "o_proj"}
	if k.HeadNorms {
		names.QNorm, names.KNorm = "q_norm", "k_norm"
	}
	return PlanDecoder(p, c, "model.norm.weight", func(b *Block, at string, layer int) {
		p.Vector(&b.MixerNorm, model.Part{Tensor: at + "input_layernorm.weight", Rows: c.Hidden})
		p.Vector(&b.FFNNorm, model.Part{Tensor: at + "post_attention_layernorm.weight", Rows: c.Hidden})
		b.Mixer = PlanAttention(p, c, at+"self_attn.", names, k.AttentionBias, layer)
		ffn := FFNNames{Gate: "gate_proj", Up: "up_proj", Down: "down_proj"}
		if k.Sparse != nil && k.Sparse(layer) {
			b.FFN = PlanMoE(p, c, at+"mlp.", ffn, false)
		} else {
			b.FFN = PlanFFN(p, c, at+"mlp.", ffn, k.FFBias)
		}
	})
}
