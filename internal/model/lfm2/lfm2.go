// Package lfm2 is the family of LFM2's dense models: short convolutions with a few layers of
// grouped-query attention between them (architecture Lfm2ForCausalLM).
package lfm2

import (
	"tfbatch/internal/model"
	"tfbatch/internal/model/nn"
)

// Open plans a checkpoint of the family.
func Open(s model.Source) (*model.Checkpoint, error) {
	c := nn.ReadLFM2(s)
	c.FF = feedForward(s)
	return nn.Open(s, c, func(p *model.Planner) *nn.Decoder {
		return nn.PlanLFM2(p, &c, func(at string, _ int) nn.Layer { return nn.PlanFFN(p, &c, at, nn.LFM2FFN(p, at), false) })
	})
}

// feedForward is the width that the tensors have, which the config must agree with: two thirds of
// block_ff_dim, times a factor, rounded up. Where the factor is null, transformers does not round and
// mlx-lm does; either is taken.
func feedForward(s model.Source) int {
	f := s.Config
	exact := f.Int(1, model.MaxWidth, oneOf(f, "block_ff_dim", "intermediate_size"))
	factor := f.FloatOr(1, 1./16, 16, "block_ffn_dim_multiplier")
	multiple := f.IntOr(256, 1, 1<<16, "block_multiple_of")
	rounded := exact
	if f.BoolOr(true, "block_auto_adjust_ff_dim") {
		exact = int(factor * float64(2*exact/3))
		rounded = (exact + multiple - 1) / multiple * multiple
	}
	t, ok := s.Tensor("model.layers.0.feed_forward.w1.weight")
	if !ok || len(t.Shape) == 0 {
		return rounded
	}
	if width := t.Shape[0]; width == 0 || width != rounded && width != exact {
		f.Failf("feed-forward is %d wide in tensor %q; the config makes it %d", width, t.Name, rounded)
	}
	return t.Shape[0]
}

// oneOf is the first key that is there: an early config has both, and block_ff_dim wins.
func oneOf(f *model.Fields, first, second string) string {
	if f.Has(first) {
		return first
	}
	return second
}
