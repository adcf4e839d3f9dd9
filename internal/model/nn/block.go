package nn

import "tfbatch/internal/backend"

// Layer is one half of a block: it reads x [rows, Hidden] and returns what the residual stream gains, in
// scratch that the next layer overwrites.
type Layer interface {
	Apply(f *Forward, x backend.Buffer) backend.Buffer
}

// Block is a residual block that norms before each half: rows are mixed along their lane, then each
// goes through the feed-forward by itself.
type Block struct {
	MixerNorm, FFNNorm backend.Buffer // [1, Hidden]
	Mixer, FFN         Layer
}

// Apply is h += mixer(norm(h)), h += ffn(norm(h)).
func (b *Block) Apply(f *Forward, h backend.Buffer) {
	f.pass.Add(h, h, b.Mixer.Apply(f, f.norm(h, b.MixerNorm)))
	f.pass.Add(h, h, b.FFN.Apply(f, f.norm(h, b.FFNNorm)))
}
