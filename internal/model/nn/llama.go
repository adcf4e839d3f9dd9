package nn

import "tfbatch/internal/model"

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

// LlamaBlock is how the blocks of a family differ from one another's.
type LlamaBlock struct {
	HeadNorms             bool // q_norm and k_norm
	AttentionBias, FFBias bool
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
		b.FFN = PlanFFN(p, c, at+"mlp.", FFNNames{Gate: "gate_proj", Up: "up_proj", Down: "down_proj"}, k.FFBias)
	})
}
