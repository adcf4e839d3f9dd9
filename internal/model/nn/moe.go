package nn

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// MoE is a mixture of gated feed-forwards, of which a router picks a few for every row.
type MoE struct {
	gate         backend.Weight
	bias         backend.Buffer // [1, experts], for the choice alone; nil without one
	gateUp, down backend.Weight // stacked
}

// ReadExperts reads the sizes of a mixture; the rest of the router is the family's.
func ReadExperts(f *model.Fields) Experts {
	count := f.Int(1, model.MaxExperts, "num_experts", "num_local_experts")
	return Experts{
		Count: count,
		Width: f.Int(1, model.MaxWidth, "moe_intermediate_size"),
		Router: backend.Router{
			TopK:  f.Int(1, min(count, model.MaxTopK), "num_experts_per_tok"),
			Scale: 1,
		},
	}
}

// PlanMoE plans gate, expert_bias where biased, and the experts below prefix: a tensor each, named by n,
// two stacked ones, gate_up_proj and down_proj, as newer exporters save them, or three, as MLX does.
func PlanMoE(p *model.Planner, c *Config, prefix string, n FFNNames, biased bool) *MoE {
	m := &MoE{}
	p.Weight(&m.gate, c.Hidden, model.Part{Tensor: prefix + "gate.weight", Rows: c.MoE.Count})
	if biased {
		p.Vector(&m.bias, model.Part{Tensor: prefix + "expert_bias", Rows: c.MoE.Count})
	}
	if stacked := prefix + "experts.gate_up_proj"; p.Has(stacked) {
		p.Stacked(&m.gateUp, c.MoE.Count, c.Hidden, model.Part{Tensor: stacked, Rows: 2 * c.MoE.Width})
		p.Stacked(&m.down, c.MoE.Count, c.MoE.Width, model.Part{Tensor: prefix + "experts.down_proj", Rows: c.Hidden})
		return m
	}
	if all := prefix + "switch_mlp."; p.Has(all + "gate_proj.weight") {
		part := func(name string, rows int) model.Part { return model.Part{Tensor: all + name + ".weight", Rows: rows} }
		p.Stacked(&m.gateUp, c.MoE.Count, c.Hidden, part("gate_proj", c.MoE.Width), part("up_proj", c.MoE.Width))
		p.Stacked(&m.down, c.MoE.Count, c.MoE.Width, part("down_proj", c.Hidden))
		return m
	}
	part := func(expert int, name string, rows int) model.Part {
		return model.Part{Tensor: fmt.Sprintf("%sexperts.%d.%s.weight", prefix, expert, name), Rows: rows}
	}
	p.Experts(&m.gateUp, c.MoE.Count, c.Hidden, func(e int) []model.Part {
		return []model.Part{part(e, n.Gate, c.MoE.Width), part(e, n.Up, c.MoE.Width)}
	})
	p.Experts(&m.down, c.MoE.Count, c.MoE.Width, func(e int) []model.Part {
		return []model.Part{part(e, n.Down, c.Hidden)}
	})
	return m
}

// apply routes every row and sums its experts, weighted, in rank order.
func (m *MoE) apply(f *forward, x backend.Buffer) backend.Buffer {
	s, p := f.moe, f.pass.(backend.MoEPass)
	f.pass.MatMul(s.logits, x, m.gate)                         // [rows, experts]
	p.Route(s.routes, s.logits, m.bias, f.config().MoE.Router) // [rows, ranks]
	p.ExpertMatMul(s.gateUp, x, m.gateUp, s.routes)            // [rows·ranks, 2·Width]
	f.pass.SwiGLU(s.act, s.gateUp)                             // [rows·ranks, Width]
	p.ExpertMatMul(s.out, s.act, m.down, s.routes)             // [rows·ranks, Hidden]
	p.Combine(f.r, s.out, s.routes)                            // [rows, Hidden]
	return f.r
}
