package nn

import (
	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Config is what config.json says of a decoder, checked: everything that decides how much memory a
// forward needs and which layers it has.
type Config struct {
	model.Info
	model.HeadShape
	Types    []string // layer_types
	Eps      float32  // of every RMS norm
	Rope     model.Rope
	Tied     bool    // the head is the embedding
	FF       int     // width of the dense feed-forward, 0 without one
	MoE      Experts // zero without experts
	Kernel   int     // taps of the short convolution, 0 without one
	ConvBias bool    // the short convolution and its projections have biases
}

// Experts are the sizes of a mixture of experts: Count of them, each Width wide, and how a row chooses.
type Experts struct {
	Count, Width int
	backend.Router
}

// Keys is how a family spells and defaults the keys that all families have.
type Keys struct {
	Hidden, Heads []string // older spellings of hidden_size and num_attention_heads
	Eps           []string
	EpsAbsent     float64 // what a config without the key means
	ThetaAbsent   float64
	Types         []string // the kinds of layer that the family has
}

// ReadConfig reads everything but the feed-forward. The caller looks at s.Config.Err when it has read the rest.
func ReadConfig(s model.Source, k Keys) Config {
	f := s.Config
	c := Config{Info: f.Info(s.Generation, k.Hidden...), Tied: s.Tied()}
	c.HeadShape = f.HeadShape(c.Hidden, k.Heads...)
	c.Eps = f.EpsOr(k.EpsAbsent, k.Eps...)
	c.Rope = f.Rope(k.ThetaAbsent)
	c.Types = f.LayerTypes(c.Layers, k.Types...)
	if c.count(model.ShortConv) > 0 {
		c.Kernel = f.IntOr(3, 2, maxKernel, "conv_L_cache")
		c.ConvBias = f.BoolOr(false, "conv_bias")
	}
	f.RefuseUnknownArithmetic()
	return c
}

// maxKernel bounds the ring of a lane; every release has 3.
const maxKernel = 16

// count is how many layers are of a kind.
func (c *Config) count(kind string) int { return c.nth(len(c.Types), kind) }

// nth is how many layers below layer are of a kind: the place of a layer among its own.
func (c *Config) nth(layer int, kind string) (n int) {
	for _, t := range c.Types[:layer] {
		if t == kind {
			n++
		}
	}
	return n
}
