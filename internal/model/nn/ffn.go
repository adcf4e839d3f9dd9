package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// FFN is the dense gated feed-forward: down(silu(gate x) ⊙ up x).
type FFN struct {
	gateUp, down         backend.Weight
	gateUpBias, downBias backend.Buffer // nil without biases
}

// FFNNames are the projections of a feed-forward below its prefix.
type FFNNames struct{ Gate, Up, Down string }

// PlanFFN plans a feed-forward of c.FF.
func PlanFFN(p *model.Planner, c *Config, prefix string, n FFNNames, bias bool) *FFN {
	m := &FFN{}
	p.Linear(&m.gateUp, &m.gateUpBias, c.Hidden, bias, model.Part{Tensor: prefix + n.Gate, Rows: c.FF}, model.Part{Tensor: prefix + n.Up, Rows: c.FF})
	p.Linear(&m.down, &m.downBias, c.FF, bias, model.Part{Tensor: prefix + n.Down, Rows: c.Hidden})
	return m
}

// apply is the feed-forward of every row.
func (m *FFN) apply(f *forward, x backend.Buffer) backend.Buffer {
	f.matMul(f.gateUp, x, m.gateUp, m.gateUpBias) // [rows, 2·FF]
	f.pass.SwiGLU(f.act, f.gateUp)                // [rows, FF]
	return f.matMul(f.r, f.act, m.down, m.downBias)
}
