// Package nn holds what families share: the layers, the state of running lanes, and the
// decoder that is made of them. A family brings what config.json means and the names of its
// tensors.
//
// Start with [Decoder], whose forward reads like the paper, then [Open].
package nn

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Open plans the weights of a checkpoint whose config gave c. plan makes the decoder by asking the planner
// for every weight.
func Open(s model.Source, c Config, plan func(*model.Planner) *Decoder) (*model.Checkpoint, error) {
	quantized := s.Config.Quantization()
	if err := s.Config.Err(); err != nil {
		return nil, err
	}
	p := model.NewPlanner(s.Tensors)
	p.Quantized(quantized)
	decoder := plan(p)
	planned, err := p.Plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Arch, err)
	}
	bind := func(dev backend.Device) (model.Model, error) { return bind(dev, &c, decoder) }
	footprint := (&bound{config: &c, decoder: decoder}).Footprint
	return &model.Checkpoint{Info: c.Info, Plan: planned, Tensors: s.Tensors, Footprint: footprint, Bind: bind}, nil
}

// bound is a decoder on a device.
type bound struct {
	config  *Config
	decoder *Decoder
	dev     backend.Device
}

// bind asks the device for everything the model will need of it.
func bind(dev backend.Device, c *Config, d *Decoder) (model.Model, error) {
	pass := dev.Begin()
	_, convDevice := dev.(backend.ConvDevice)
	_, convPass := pass.(backend.ConvPass)
	if c.Kernel > 0 && !(convDevice && convPass) {
		return nil, fmt.Errorf("%s: device %s has no short convolution", c.Arch, dev.Name())
	}
	_, moeDevice := dev.(backend.MoEDevice)
	_, moePass := pass.(backend.MoEPass)
	if c.MoE.Count > 0 && !(moeDevice && moePass) {
		return nil, fmt.Errorf("%s: device %s has no mixture of experts", c.Arch, dev.Name())
	}
	return &bound{config: c, decoder: d, dev: dev}, nil
}

func (b *bound) Info() model.Info { return b.config.Info }

// Ends implements [model.Lender].
func (b *bound) Ends() (embed, head backend.Weight) {
	return b.decoder.ends.embed, b.decoder.ends.head()
}

func (b *bound) Footprint(s model.Shape) int64 {
	a := &arena{}
	newState(a, b, s)
	return a.bytes
}

func (b *bound) NewState(s model.Shape) (model.State, error) {
	if err := b.check(s); err != nil {
		return nil, fmt.Errorf("%s: state: %w", b.config.Arch, err)
	}
	a := &arena{dev: b.dev}
	st := newState(a, b, s)
	if a.err == nil {
		a.err = b.dev.Write(st.rope, RopeTable(b.positions(s), b.config.Dim, b.config.Rope))
	}
	if a.err != nil {
		return nil, fmt.Errorf("%s: state: %w", b.config.Arch, a.err)
	}
	return st, nil
}

// positions is how far a lane can get: to the model's limit, or over all pages if those are fewer.
func (b *bound) positions(s model.Shape) int {
	return min(b.config.Context, s.Pages*backend.PageKeys)
}

func (b *bound) check(s model.Shape) error {
	for _, size := range []struct {
		name    string
		n, most int
	}{{"lanes", s.Lanes, maxLanes}, {"pages", s.Pages, maxPages}, {"rows", s.Rows, maxRows}, {"window", s.Window, maxWindow}} {
		if size.n < 1 || size.n > size.most {
			return fmt.Errorf("%d %s, not between 1 and %d", size.n, size.name, size.most)
		}
	}
	if s.Heads < 0 || s.Heads > s.Rows {
		return fmt.Errorf("%d head rows of %d rows", s.Heads, s.Rows)
	}
	for i, l := range s.Taps {
		if l < 0 || l >= b.config.Layers || i > 0 && l <= s.Taps[i-1] {
			return fmt.Errorf("taps %v are not ascending layers below %d", s.Taps, b.config.Layers)
		}
	}
	if _, ok := b.dev.Begin().(backend.TapPass); len(s.Taps) > 0 && !ok {
		return fmt.Errorf("device %s has no taps", b.dev.Name())
	}
	return nil
}

// Limits of a state, beyond any machine, that keep its size within an int64.
const (
	maxLanes  = 1 << 16
	maxPages  = 1 << 20
	maxRows   = 1 << 20
	maxWindow = 1 << 10
)
