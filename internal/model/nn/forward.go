package nn

import (
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Forward is one forward in the making: the pass that records it, the batch, and scratch cut to its
// rows. A network calls its methods in the order of the paper.
type Forward struct {
	pass  backend.Pass
	state *state
	batch *model.Batch
	scratch
}

func newForward(p backend.Pass, s *state, b *model.Batch) *Forward {
	return &Forward{pass: p, state: s, batch: b, scratch: s.all.top(len(b.IDs), len(b.Heads))}
}

// norm is x normalised and scaled by gain, in scratch that the next norm overwrites. [rows, Hidden]
func (f *Forward) norm(x, gain backend.Buffer) backend.Buffer {
	f.pass.RMSNorm(f.x, x, gain, f.state.net.config.Eps)
	return f.x
}

// Tap keeps h, the residual stream after a layer, if a drafter watches that layer.
func (f *Forward) Tap(h backend.Buffer, layer int) {
	if slot, ok := slices.BinarySearch(f.state.shape.Taps, layer); ok {
		f.pass.(backend.TapPass).Tap(f.taps, h, slot)
	}
}

// matMul is dst = x·wᵀ, plus bias where there is one.
func (f *Forward) matMul(dst, x backend.Buffer, w backend.Weight, bias backend.Buffer) backend.Buffer {
	f.pass.MatMul(dst, x, w)
	if bias != nil {
		f.pass.Bias(dst, bias)
	}
	return dst
}
