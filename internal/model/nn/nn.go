// Package nn holds what families share: the layers, the state of running lanes, and the
// plumbing that makes a graph of layers a [model.Model]. A family brings its config, the
// names of its tensors and a [Network], whose Forward reads like the paper.
//
// Start with [Forward], the helper that a Network's Forward is written with.
package nn

import (
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// Network is a family's graph.
type Network interface {
	Forward(f *Forward) model.Out
	Ends() *Ends
}

// Open plans the weights of a checkpoint whose config gave c. build makes the network by asking the
// planner for every weight.
func Open(s model.Source, c Config, build func(*model.Planner) Network) (*model.Checkpoint, error) {
	p := model.NewPlanner(s.Tensors)
	net := build(p)
	plan, err := p.Plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Arch, err)
	}
	bind := func(dev backend.Device) (model.Model, error) { return bind(dev, &c, net) }
	return &model.Checkpoint{Info: c.Info, Plan: plan, Tensors: s.Tensors, Bind: bind}, nil
}

// network is a Network on a device.
type network struct {
	config *Config
	graph  Network
	dev    backend.Device
}

// bind asks the device for everything the model will need of it.
func bind(dev backend.Device, c *Config, graph Network) (model.Model, error) {
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
	return &network{config: c, graph: graph, dev: dev}, nil
}

func (n *network) Info() model.Info { return n.config.Info }

// Ends implements [model.Lender].
func (n *network) Ends() (embed, head backend.Weight) {
	e := n.graph.Ends()
	return e.embed, e.head()
}

func (n *network) Footprint(s model.Shape) int64 {
	a := &arena{}
	newState(a, n, s)
	return a.bytes
}

func (n *network) NewState(s model.Shape) (model.State, error) {
	if err := n.check(s); err != nil {
		return nil, fmt.Errorf("%s: state: %w", n.config.Arch, err)
	}
	a := &arena{dev: n.dev}
	st := newState(a, n, s)
	if a.err == nil {
		a.err = n.dev.Write(st.rope, RopeTable(n.positions(s), n.config.Dim, n.config.Theta))
	}
	if a.err != nil {
		return nil, fmt.Errorf("%s: state: %w", n.config.Arch, a.err)
	}
	return st, nil
}

// positions is how far a lane can get: to the model's limit, or over all pages if those are fewer.
func (n *network) positions(s model.Shape) int {
	return min(n.config.Context, s.Pages*backend.PageKeys)
}

func (n *network) check(s model.Shape) error {
	for _, field := range []struct {
		name string
		n    int
	}{{"lanes", s.Lanes}, {"pages", s.Pages}, {"rows", s.Rows}, {"window", s.Window}} {
		if field.n < 1 || field.n > maxShape {
			return fmt.Errorf("%d %s, not between 1 and %d", field.n, field.name, maxShape)
		}
	}
	if s.Heads < 0 || s.Heads > s.Rows {
		return fmt.Errorf("%d head rows of %d rows", s.Heads, s.Rows)
	}
	for i, l := range s.Taps {
		if l < 0 || l >= n.config.Layers || i > 0 && l <= s.Taps[i-1] {
			return fmt.Errorf("taps %v are not ascending layers below %d", s.Taps, n.config.Layers)
		}
	}
	if _, ok := n.dev.Begin().(backend.TapPass); len(s.Taps) > 0 && !ok {
		return fmt.Errorf("device %s has no taps", n.dev.Name())
	}
	return nil
}

// maxShape keeps products of a state's sizes and a model's widths within an int64.
const maxShape = 1 << 24
