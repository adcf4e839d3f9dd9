// Package dspark is the DSpark drafter (arXiv 2607.05147) as LiquidAI ships it for LFM2.5: a small
// transformer that watches some layers of the target and guesses a block of tokens at once.
//
// Every token that the target has processed leaves one row of context, made from the residual stream after
// the watched layers. A round puts the last token and a run of masks behind that context, lets the block look
// at all of it and at itself in both directions, and reads a row of scores for each position off the
// target's own head. A low-rank Markov head then chains them: each guess shifts the scores of the next.
//
// Start with [Open], then [Drafter.Propose]. The package takes its guesses greedily and refuses to know
// whether they pay; context is kept whole in rounds without guesses too.
package dspark

import (
	"context"
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/model"
	"tfbatch/loader"
	"tfbatch/quant"
)

// Options choose how a drafter is loaded.
type Options struct {
	// Bits is 0 for the weights as released, or 8 to store matrices in 8 bits, in groups of 64 inputs, as they
	// are loaded. The device must run such weights.
	Bits int
	// Trim cuts a block to the guesses that were asked for. The stack is trained on blocks of full width, and
	// later masks bear on earlier rows; with the builtin pair that is worth 1 in 100 guesses kept, where
	// asking for 2 of 9 would spare most of the work.
	Trim bool
}

// check refuses what was not seen to keep the guesses good.
func (o Options) check() error {
	if o.Bits == 0 || o.Bits == 8 {
		return nil
	}
	return fmt.Errorf("drafter bits are %d: only 0, the weights as released, and 8 are supported", o.Bits)
}

// Checkpoint is a drafter's checkpoint that fits its target: everything is decided, nothing is read.
// It is loaded once.
type Checkpoint struct {
	Plan    *model.Plan
	Tensors *loader.Snapshot
	Block   int   // most guesses of a round
	Taps    []int // layers of the target that it watches, ascending

	config  config
	weights *weights
	trim    bool
}

// Open reads config.json beside the weights and plans the load for target. Whatever does not fit the target or
// this package is refused by name.
func Open(s *loader.Snapshot, target model.Info, o Options) (*Checkpoint, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	data, err := s.ReadFile(configName, model.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	c, err := readConfig(data, target)
	if err != nil {
		return nil, err
	}
	p := model.NewPlanner(s)
	p.Quantized(c.quantized)
	if o.Bits != 0 {
		p.Encode(quant.Format{Kind: quant.Affine, Bits: o.Bits, Group: 64})
	}
	w := plan(p, &c)
	planned, err := p.Plan()
	if err != nil {
		return nil, fmt.Errorf("drafter: %w", err)
	}
	return &Checkpoint{Plan: planned, Tensors: s, Block: c.block, Taps: c.taps, config: c, weights: w, trim: o.Trim}, nil
}

// Shape is how much state a run needs: lanes and pages are those of the target.
type Shape struct {
	Lanes int
	Pages int
	KVF32 bool // keep K and V as f32
}

// maxShape keeps products of a state's sizes and a model's widths within an int64.
const maxShape = 1 << 24

func (s Shape) check() error {
	if s.Lanes < 1 || s.Lanes > maxShape || s.Pages < 1 || s.Pages > maxShape {
		return fmt.Errorf("%d lanes and %d pages, not between 1 and %d", s.Lanes, s.Pages, maxShape)
	}
	return nil
}

// Footprint is the memory of the state that Load will make, in bytes, without weights.
func (c *Checkpoint) Footprint(target model.Info, s Shape) int64 {
	return footprint(&c.config, sizesOf(&c.config, target, s))
}

// Load brings the weights to dev, one tensor at a time, and makes the state. target is loaded on the same
// device and lends its ends. progress, if not nil, hears how many more bytes were read. After an error the
// device holds memory that only its Close frees.
func (c *Checkpoint) Load(ctx context.Context, dev backend.Device, target model.Model, s Shape, progress func(n int64)) (*Drafter, []loader.Digest, error) {
	lender, ok := target.(model.Lender)
	if !ok {
		return nil, nil, fmt.Errorf("drafter: the target, %s, does not lend its embedding and its head", target.Info().Arch)
	}
	if err := s.check(); err != nil {
		return nil, nil, fmt.Errorf("drafter: state: %w", err)
	}
	digests, err := c.Plan.Load(ctx, dev, c.Tensors, progress)
	if err != nil {
		return nil, nil, fmt.Errorf("drafter: %w", err)
	}
	d := &Drafter{cfg: c.config, weights: c.weights, trim: c.trim, dev: dev, least: leastReach}
	d.embed, d.head = lender.Ends()
	z := sizesOf(&d.cfg, target.Info(), s)
	if err := d.reserve(dev, &d.cfg, z); err != nil {
		return nil, nil, fmt.Errorf("drafter: state: %w", err)
	}
	d.stage = newStage(d.cfg.tapWidth())
	d.lanes = make([]lane, s.Lanes)
	for page := range z.kv.Pages {
		d.free = append(d.free, int32(z.kv.Pages-1-page)) // page 0 leaves first
	}
	if err := d.readConfidence(ctx); err != nil {
		return nil, nil, fmt.Errorf("drafter: %w", err)
	}
	return d, digests, nil
}

// Drafter is a loaded drafter with its lanes.
type Drafter struct {
	cfg config
	*weights
	trim        bool // blocks to what was asked
	dev         backend.Device
	embed, head backend.Weight // the target's
	state

	lanes []lane
	free  []int32 // pages of no lane
	stage stage
	watch watch
	round round
	sure  confidence
	least float32 // leastReach
}

var _ draft.Seedable = (*Drafter)(nil)

// Seedable says that a lane may be opened in the middle of its prompt: a drafter cannot tell one from a reply.
func (d *Drafter) Seedable() {}

// Taps are the layers that the drafter watches.
func (d *Drafter) Taps() []int { return d.cfg.taps }
