package nn

import "tfbatch/internal/model"

// What LFM2's dense and sparse families have in common: everything but the choice of feed-forward.

// ReadLFM2 reads config.json but for the feed-forward.
func ReadLFM2(s model.Source) Config {
	c := ReadConfig(s, Keys{
		Hidden:      []string{"block_dim", "conv_dim", "conv_dim_out"},
		Heads:       []string{"num_heads"},
		Eps:         []string{"norm_eps", "block_norm_eps"},
		EpsAbsent:   1e-5,
		ThetaAbsent: 1e6,
		Types:       []string{model.ShortConv, model.FullAttention},
	})
	s.Config.Only("block_use_swiglu", "true")
	s.Config.Only("use_pos_enc", "true")
	return c
}

// PlanLFM2 plans everything but the feed-forwards, which ffn plans one by one.
func PlanLFM2(p *model.Planner, c *Config, ffn func(at string, layer int) Layer) *Decoder {
	const finalNorm = "model.embedding_norm.weight" // despite its name
	return PlanDecoder(p, c, finalNorm, func(b *Block, at string, layer int) {
		p.Vector(&b.MixerNorm, model.Part{Tensor: at + "operator_norm.weight", Rows: c.Hidden})
		p.Vector(&b.FFNNorm, model.Part{Tensor: at + "ffn_norm.weight", Rows: c.Hidden})
		if c.Types[layer] == model.ShortConv {
			b.Mixer = PlanShortConv(p, c, at+"conv.", layer)
		} else {
			names := AttentionNames{Out: "out_proj", QNorm: "q_layernorm", KNorm: "k_layernorm"}
			b.Mixer = PlanAttention(p, c, at+"self_attn.", names, false, layer)
		}
		b.FFN = ffn(at+"feed_forward.", layer)
	})
}

// LFM2FFN is how LFM2 names the projections of the feed-forward or of an expert below prefix: w1, w3 and
// w2, unless MLX has renamed them, as it does in the sparse models.
func LFM2FFN(p *model.Planner, prefix string) FFNNames {
	if p.Has(prefix + "gate_proj.weight") {
		return FFNNames{Gate: "gate_proj", Up: "up_proj", Down: "down_proj"}
	}
	return FFNNames{Gate: "w1", Up: "w3", Down: "w2"}
}
