package dspark

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// weights are all that a drafter brings; its embedding and its head are the target's.
type weights struct {
	fc                backend.Weight // [Hidden, taps·Hidden]
	contextNorm, norm backend.Buffer // hidden_norm, and the norm before the head
	layers            []layer
	w1, w2            backend.Weight // the Markov head: [Vocab, rank] both
	confidence, bias  backend.Buffer // [1, confidenceWidth], [1, 1]; nil without a confidence head
}

// layer is one of the stack.
type layer struct {
	inputNorm, postNorm    backend.Buffer
	qNorm, kNorm           backend.Buffer
	qkv, out, gateUp, down backend.Weight
}

// plan asks p for every weight. Some exporters put "model." before all names.
func plan(p *model.Planner, c *config) *weights {
	prefix := ""
	if p.Has("model.fc.weight") {
		prefix = "model."
	}
	part := func(name string, rows int) model.Part { return model.Part{Tensor: prefix + name, Rows: rows} }
	w := &weights{layers: make([]layer, c.layers)}
	p.Weight(&w.fc, c.tapWidth(), part("fc.weight", c.hidden))
	p.Vector(&w.contextNorm, part("hidden_norm.weight", c.hidden))
	p.Vector(&w.norm, part("norm.weight", c.hidden))
	for i := range w.layers {
		w.layers[i].plan(p, c, fmt.Sprintf("%slayers.%d.", prefix, i))
	}
	p.Weight(&w.w1, c.rank, part("markov_head.markov_w1.weight", c.vocab))
	p.Weight(&w.w2, c.rank, part("markov_head.markov_w2.weight", c.vocab))
	head, bias := part("confidence_head.proj.weight", c.confidenceWidth()), part("confidence_head.proj.bias", 1)
	if !c.confidence {
		p.Ignore(head.Tensor)
		p.Ignore(bias.Tensor)
		return w
	}
	p.Vector(&w.confidence, head)
	p.Vector(&w.bias, bias)
	return w
}

func (l *layer) plan(p *model.Planner, c *config, at string) {
	part := func(name string, rows int) model.Part { return model.Part{Tensor: at + name + ".weight", Rows: rows} }
	q, kv := c.Q*c.Dim, c.KV*c.Dim
	p.Vector(&l.inputNorm, part("input_layernorm", c.hidden))
	p.Vector(&l.postNorm, part("post_attention_layernorm", c.hidden))
	p.Vector(&l.qNorm, part("self_attn.q_norm", c.Dim))
	p.Vector(&l.kNorm, part("self_attn.k_norm", c.Dim))
	p.Weight(&l.qkv, c.hidden, part("self_attn.q_proj", q), part("self_attn.k_proj", kv), part("self_attn.v_proj", kv))
	p.Weight(&l.out, q, part("self_attn.o_proj", c.hidden))
	p.Weight(&l.gateUp, c.hidden, part("mlp.gate_proj", c.ff), part("mlp.up_proj", c.ff))
	p.Weight(&l.down, c.ff, part("mlp.down_proj", c.hidden))
}
