package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// ShortConv is LFM2's gated short convolution: out(C ⊙ conv(B ⊙ x)) with (B, C, x) = in(input).
// It has no activation function.
type ShortConv struct {
	in, out         backend.Weight
	inBias, outBias backend.Buffer // nil without biases
	kernel, bias    backend.Buffer // [Hidden, Kernel], [1, Hidden] or nil
	layer           int            // among the layers that keep a ring
}

// PlanShortConv plans in_proj, conv and out_proj below prefix for the convolution of a layer.
func PlanShortConv(p *model.Planner, c *Config, prefix string, layer int) *ShortConv {
	m := &ShortConv{layer: c.nth(layer, model.ShortConv)}
	p.Linear(&m.in, &m.inBias, c.Hidden, c.ConvBias, model.Part{Tensor: prefix + "in_proj", Rows: 3 * c.Hidden})
	p.Kernel(&m.kernel, c.Hidden, c.Kernel, prefix+"conv.weight")
	if c.ConvBias {
		p.Vector(&m.bias, model.Part{Tensor: prefix + "conv.bias", Rows: c.Hidden})
	}
	p.Linear(&m.out, &m.outBias, c.Hidden, c.ConvBias, model.Part{Tensor: prefix + "out_proj", Rows: c.Hidden})
	return m
}

// apply convolves every lane's rows after those its ring remembers.
func (m *ShortConv) apply(f *forward, x backend.Buffer) backend.Buffer {
	f.matMul(f.bcx, x, m.in, m.inBias) // [rows, 3·Hidden]
	f.pass.(backend.ConvPass).ShortConv(f.conv, f.bcx, m.kernel, m.bias, f.state.conv, m.layer, f.batch.Rows)
	return f.matMul(f.r, f.conv, m.out, m.outBias)
}
