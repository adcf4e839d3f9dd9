// Package modeltest makes checkpoints of random weights and holds the suite that every family
// passes. Start with [Spec], the shape of a checkpoint, and [Spec.Write].
package modeltest

import (
	"fmt"
	"strings"

	"tfbatch/loader"
)

// Spec is the shape of a checkpoint to make. What a family does not have stays zero.
type Spec struct {
	Type          string // model_type: lfm2, lfm2_moe, llama, qwen3 or qwen3_moe
	Vocab, Hidden int
	Layers        string // a letter for each: c for a short convolution, a for attention
	Q, KV, Dim    int    // heads
	FF            int    // width of the dense feed-forward
	Kernel        int    // taps of the convolution
	Experts       Experts
	Bias          bool // in every projection that the family can have one in
	Untied        bool // the head is a matrix of its own
	OldKeys       bool // config.json in its older spelling
	DType         loader.DType
	MLX           bool // names, axes and stacks as mlx-lm saves them
	Affine        Affine
}

// Experts is the shape of a mixture of experts.
type Experts struct {
	Count, TopK, Width int
	Dense              int // the layers below have a dense feed-forward
	Biased             bool
	Raw                bool // weights are not renormalised
	Scale              float64
	Stacked            bool // one tensor for all experts, as newer exporters save them
}

// LFM2of350M is LFM2-350M, for benchmarks that want real sizes: 0.7 GB.
func LFM2of350M() Spec { return lfm2(1024, 16, 4608) }

// LFM2of1200M is LFM2-1.2B: 2.3 GB.
func LFM2of1200M() Spec { return lfm2(2048, 32, 8192) }

func lfm2(hidden, heads, ff int) Spec {
	return Spec{Type: "lfm2", Vocab: 65536, Hidden: hidden, Layers: "ccaccaccacacacac", Q: heads, KV: 8, Dim: 64, FF: ff, Kernel: 3, DType: loader.BF16}
}

// positions is the max_position_embeddings of every checkpoint made here.
const positions = 4096

// Config is config.json.
func (s Spec) Config() map[string]any {
	c := map[string]any{
		"model_type": s.Type, "vocab_size": s.Vocab, "hidden_size": s.Hidden, "num_hidden_layers": len(s.Layers),
		"num_attention_heads": s.Q, "num_key_value_heads": s.KV, "head_dim": s.Dim,
		"max_position_embeddings": positions, "tie_word_embeddings": !s.Untied, "bos_token_id": 1, "eos_token_id": 7,
		"intermediate_size": s.FF,
	}
	if s.lfm2() {
		s.lfm2Keys(c)
	} else {
		c["rms_norm_eps"], c["attention_bias"], c["mlp_bias"] = 1e-6, s.Bias, s.Bias && s.Type == "llama"
	}
	s.expertKeys(c)
	if s.Affine.Bits > 0 {
		c["quantization"] = s.quantization()
		c["quantization_config"] = c["quantization"]
	}
	if s.OldKeys {
		c["rope_theta"] = theta
	} else {
		c["rope_parameters"] = map[string]any{"rope_theta": theta, "rope_type": "default"}
	}
	c["architectures"] = []string{map[string]string{
		"lfm2": "Lfm2ForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM", "llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
	}[s.Type]}
	return c
}

const theta = 1e6

func (s Spec) lfm2Keys(c map[string]any) {
	c["norm_eps"], c["conv_L_cache"], c["conv_bias"] = 1e-5, s.Kernel, s.Bias
	c["block_auto_adjust_ff_dim"] = false
	var types []string
	var indexes []int
	for l, kind := range s.Layers {
		if kind == 'a' {
			types, indexes = append(types, "full_attention"), append(indexes, l)
		} else {
			types = append(types, "conv")
		}
	}
	if s.OldKeys {
		c["full_attn_idxs"] = indexes
	} else {
		c["layer_types"] = types
	}
}

func (s Spec) expertKeys(c map[string]any) {
	e := s.Experts
	if e.Count == 0 {
		return
	}
	c["num_experts"], c["num_experts_per_tok"], c["moe_intermediate_size"] = e.Count, e.TopK, e.Width
	c["norm_topk_prob"] = !e.Raw
	if s.lfm2() {
		c["num_dense_layers"], c["use_expert_bias"], c["routed_scaling_factor"] = e.Dense, e.Biased, e.Scale
		return
	}
	dense := []int{}
	for l := range e.Dense {
		dense = append(dense, l)
	}
	c["mlp_only_layers"] = dense
}

// lfm2 reports whether the checkpoint is of one of LFM2's families; the others descend from Llama.
func (s Spec) lfm2() bool { return strings.HasPrefix(s.Type, "lfm2") }

// ffnNames are the projections of a feed-forward or an expert: gate, up and down.
func (s Spec) ffnNames() (gate, up, down string) {
	if s.lfm2() {
		return "w1", "w3", "w2"
	}
	return "gate_proj", "up_proj", "down_proj"
}

// Tensors lists the tensors of the checkpoint in the order of the layers.
func (s Spec) Tensors() []loader.Tensor { return s.coded(s.dense()) }

// dense lists them as they were before they were quantized.
func (s Spec) dense() []loader.Tensor {
	l := &lister{dtype: s.DType}
	l.add("model.embed_tokens.weight", s.Vocab, s.Hidden)
	for i, kind := range s.Layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		if s.lfm2() {
			s.lfm2Layer(l, at, kind == 'a', i)
		} else {
			s.llamaLayer(l, at, i)
		}
	}
	l.add(s.finalNorm(), s.Hidden)
	if s.Untied {
		l.add("lm_head.weight", s.Vocab, s.Hidden)
	}
	if s.MLX {
		return s.mlx(l.tensors)
	}
	return l.tensors
}

func (s Spec) finalNorm() string {
	if s.lfm2() {
		return "model.embedding_norm.weight"
	}
	return "model.norm.weight"
}

type lister struct {
	dtype   loader.DType
	tensors []loader.Tensor
}

func (l *lister) add(name string, shape ...int) {
	l.tensors = append(l.tensors, loader.Tensor{Name: name, DType: l.dtype, Shape: shape})
}

// linear adds a projection from cols inputs.
func (l *lister) linear(name string, bias bool, rows, cols int) {
	l.add(name+".weight", rows, cols)
	if bias {
		l.add(name+".bias", rows)
	}
}

func (s Spec) lfm2Layer(l *lister, at string, attention bool, layer int) {
	l.add(at+"operator_norm.weight", s.Hidden)
	l.add(at+"ffn_norm.weight", s.Hidden)
	if attention {
		s.attention(l, at+"self_attn.", "out_proj", "q_layernorm", "k_layernorm", false)
	} else {
		l.linear(at+"conv.in_proj", s.Bias, 3*s.Hidden, s.Hidden)
		l.linear(at+"conv.out_proj", s.Bias, s.Hidden, s.Hidden)
		l.add(at+"conv.conv.weight", s.Hidden, 1, s.Kernel)
		if s.Bias {
			l.add(at+"conv.conv.bias", s.Hidden)
		}
	}
	s.feedForward(l, at+"feed_forward.", layer)
}

// feedForward adds the dense or the sparse one of a layer.
func (s Spec) feedForward(l *lister, at string, layer int) {
	if s.Experts.Count > 0 && layer >= s.Experts.Dense {
		s.experts(l, at)
		return
	}
	gate, up, down := s.ffnNames()
	bias := s.Bias && s.Type == "llama"
	l.linear(at+gate, bias, s.FF, s.Hidden)
	l.linear(at+up, bias, s.FF, s.Hidden)
	l.linear(at+down, bias, s.Hidden, s.FF)
}

func (s Spec) experts(l *lister, at string) {
	e := s.Experts
	l.add(at+"gate.weight", e.Count, s.Hidden)
	if e.Biased {
		l.tensors = append(l.tensors, loader.Tensor{Name: at + "expert_bias", DType: loader.F32, Shape: []int{e.Count}})
	}
	if e.Stacked {
		l.add(at+"experts.gate_up_proj", e.Count, 2*e.Width, s.Hidden)
		l.add(at+"experts.down_proj", e.Count, s.Hidden, e.Width)
		return
	}
	gate, up, down := s.ffnNames()
	for i := range e.Count {
		at := fmt.Sprintf("%sexperts.%d.", at, i)
		l.add(at+gate+".weight", e.Width, s.Hidden)
		l.add(at+up+".weight", e.Width, s.Hidden)
		l.add(at+down+".weight", s.Hidden, e.Width)
	}
}

func (s Spec) llamaLayer(l *lister, at string, layer int) {
	l.add(at+"input_layernorm.weight", s.Hidden)
	l.add(at+"post_attention_layernorm.weight", s.Hidden)
	qNorm, kNorm := "", ""
	if strings.HasPrefix(s.Type, "qwen3") {
		qNorm, kNorm = "q_norm", "k_norm"
	}
	s.attention(l, at+"self_attn.", "o_proj", qNorm, kNorm, s.Bias)
	s.feedForward(l, at+"mlp.", layer)
}

func (s Spec) attention(l *lister, at, out, qNorm, kNorm string, bias bool) {
	l.linear(at+"q_proj", bias, s.Q*s.Dim, s.Hidden)
	l.linear(at+"k_proj", bias, s.KV*s.Dim, s.Hidden)
	l.linear(at+"v_proj", bias, s.KV*s.Dim, s.Hidden)
	l.linear(at+out, bias, s.Hidden, s.Q*s.Dim)
	if qNorm != "" {
		l.add(at+qNorm+".weight", s.Dim)
		l.add(at+kNorm+".weight", s.Dim)
	}
}
