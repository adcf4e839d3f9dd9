package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Attention is grouped-query attention with rotary positions over a lane's pages.
type Attention struct {
	qkv, out         backend.Weight
	qkvBias, outBias backend.Buffer // nil without biases
	qNorm, kNorm     backend.Buffer // per head; nil where the family has none
	layer            int            // among the layers that keep K and V
}

// AttentionNames are the tensors of an attention layer that families name differently; q_proj, k_proj and
// v_proj are the same in all. QNorm and KNorm are empty where the family does not norm its heads.
type AttentionNames struct{ Out, QNorm, KNorm string }

// PlanAttention plans the attention of a layer below prefix. Where biased, every projection has a bias.
func PlanAttention(p *model.Planner, c *Config, prefix string, n AttentionNames, biased bool, layer int) *Attention {
	a := &Attention{layer: c.nth(layer, model.FullAttention)}
	part := func(name string, rows int) model.Part { return model.Part{Tensor: prefix + name, Rows: rows} }
	q, kv := c.Q*c.Dim, c.KV*c.Dim
	p.Linear(&a.qkv, &a.qkvBias, c.Hidden, biased, part("q_proj", q), part("k_proj", kv), part("v_proj", kv))
	p.Linear(&a.out, &a.outBias, q, biased, part(n.Out, c.Hidden))
	if n.QNorm != "" {
		p.Vector(&a.qNorm, part(n.QNorm+".weight", c.Dim))
		p.Vector(&a.kNorm, part(n.KNorm+".weight", c.Dim))
	}
	return a
}

// apply projects, norms and turns the heads, keeps k and v in the lanes' pages, attends and projects back.
func (a *Attention) apply(f *forward, x backend.Buffer) backend.Buffer {
	s, c := f.state, f.config()
	h := backend.Heads{Q: c.Q, KV: c.KV, Dim: c.Dim, QNorm: a.qNorm, KNorm: a.kNorm, Eps: c.Eps, Rope: s.rope, Pairing: backend.HalfSplit}
	f.matMul(f.qkv, x, a.qkv, a.qkvBias)                        // [rows, (Q+2·KV)·Dim]
	f.pass.QKV(f.q, f.qkv, h, s.kv, a.layer, f.batch.Rows)      // [rows, Q·Dim]
	f.pass.Attend(f.attended, f.q, s.kv, a.layer, f.batch.Rows) // [rows, Q·Dim]
	return f.matMul(f.r, f.attended, a.out, a.outBias)          // [rows, Hidden]
}
