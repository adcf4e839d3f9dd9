package nn

import (
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// forward is one forward in the making: the pass that records it, the batch, and scratch cut to its rows.
type forward struct {
	pass  backend.Pass
	state *state
	batch *model.Batch
	scratch
}

func newForward(p backend.Pass, s *state, b *model.Batch) *forward {
	f := &forward{pass: p, state: s, batch: b, scratch: s.all.top(len(b.IDs), len(b.Heads))}
	if !b.Taps {
		f.taps = nil
	}
	return f
}

// config is that of the model.
func (f *forward) config() *Config { return f.state.on.config }

// embed starts the residual stream with the embeddings of the batch's ids. [rows, Hidden]
func (f *forward) embed(e *ends) backend.Buffer {
	f.pass.Embed(f.h, e.embed, f.batch.IDs)
	return f.h
}

// norm is x normalised and scaled by gain, in scratch that the next norm overwrites. [rows, Hidden]
func (f *forward) norm(x, gain backend.Buffer) backend.Buffer {
	f.pass.RMSNorm(f.x, x, gain, f.config().Eps)
	return f.x
}

// add adds a layer's result to the residual stream.
func (f *forward) add(h, r backend.Buffer) { f.pass.Add(h, h, r) }

// tap keeps h, the residual stream after a layer, if a drafter watches that layer now.
func (f *forward) tap(h backend.Buffer, layer int) {
	if f.taps == nil {
		return
	}
	if slot, ok := slices.BinarySearch(f.state.shape.Taps, layer); ok {
		f.pass.(backend.TapPass).Tap(f.taps, h, slot)
	}
}

// matMul is dst = x·wᵀ, plus bias where there is one.
func (f *forward) matMul(dst, x backend.Buffer, w backend.Weight, bias backend.Buffer) backend.Buffer {
	f.pass.MatMul(dst, x, w)
	if bias != nil {
		f.pass.Bias(dst, bias)
	}
	return dst
}

// head norms the rows of h whose logits are wanted and multiplies them by the head.
func (f *forward) head(h backend.Buffer, e *ends) model.Out {
	if len(f.batch.Heads) > 0 {
		f.pass.Gather(f.headX, h, f.batch.Heads)                 // [heads, Hidden]
		f.pass.RMSNorm(f.headX, f.headX, e.norm, f.config().Eps) // [heads, Hidden]
		f.pass.MatMul(f.logits, f.headX, e.head())               // [heads, Vocab]
	}
	return model.Out{Logits: f.logits, Taps: f.taps}
}
