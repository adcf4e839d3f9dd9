package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tfbatch/internal/backend"
	"tfbatch/loader"
	"tfbatch/quant"
)

// Source is a checkpoint before it is understood.
type Source struct {
	Config     *Fields // config.json
	Generation *Fields // generation_config.json, nil when there is none
	Tensors    *loader.Snapshot
}

// Tied reports whether the head is the embedding: as the config says, else by what the checkpoint holds.
func (s Source) Tied() bool {
	_, untied := s.Tensor(HeadTensor)
	return s.Config.BoolOr(!untied, "tie_word_embeddings", "tie_embedding")
}

// Tensor finds a tensor by its name in a plain language model.
func (s Source) Tensor(name string) (loader.Tensor, bool) { return find(s.Tensors, name) }

// HeadTensor is the name of an untied head in every family here.
const HeadTensor = "lm_head.weight"

// Checkpoint is a checkpoint that a family has understood: everything is decided, nothing is read.
// It is loaded once.
type Checkpoint struct {
	Info Info
	Plan *Plan

	// Tensors is where the bytes will come from.
	Tensors *loader.Snapshot
	// Footprint is that of the model, without a device.
	Footprint func(Shape) int64
	// Bind makes the model on a device, before its weights are there. It names what the device lacks.
	Bind func(backend.Device) (Model, error)
}

// Load brings the weights to dev, one tensor at a time, and returns the model with the digest of every
// shard. progress, if not nil, hears how many more bytes were read; they sum to Tensors.Bytes().
// After an error the device holds weights that only its Close frees.
func (c *Checkpoint) Load(ctx context.Context, dev backend.Device, progress func(n int64)) (Model, []loader.Digest, error) {
	m, err := c.Bind(dev)
	if err != nil {
		return nil, nil, err
	}
	digests, err := c.Plan.Load(ctx, dev, c.Tensors, progress)
	if err != nil {
		return nil, nil, err
	}
	return m, digests, nil
}

// Load brings what the plan names from s to dev, as [Checkpoint.Load] does for a model.
func (p *Plan) Load(ctx context.Context, dev backend.Device, s *loader.Snapshot, progress func(n int64)) ([]loader.Digest, error) {
	l := &load{plan: p, dev: dev, tensors: s}
	if err := l.reserve(); err != nil {
		return nil, err
	}
	digests, err := loader.Load(ctx, s, loader.Steps[ready]{
		Want:     func(t loader.Tensor) bool { _, ok := p.fills[t.Name]; return ok },
		Encode:   l.encode,
		Upload:   l.upload,
		Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	return digests, l.write()
}

// load carries out a plan. It decides nothing.
type load struct {
	plan    *Plan
	dev     backend.Device
	tensors *loader.Snapshot
	vectors [][]float32 // gathered on the host: several tensors may make one
}

// reserve makes every weight and buffer, so that a device too small says so before anything is read.
func (l *load) reserve() (err error) {
	for _, w := range l.plan.Weights {
		if *w.dst, err = l.dev.NewWeight(w.Shape); err != nil {
			return fmt.Errorf("reserve %q: %w", w.Name, err)
		}
	}
	for _, v := range l.plan.Vectors {
		if *v.dst, err = l.dev.NewBuffer(v.Rows, v.Cols); err != nil {
			return fmt.Errorf("reserve %q: %w", v.Name, err)
		}
		l.vectors = append(l.vectors, make([]float32, v.Rows*v.Cols))
	}
	return nil
}

// ready is a tensor that can go to the device: a matrix, or the elements of a vector.
type ready struct {
	matrix quant.Matrix
	vector []float32
}

func (l *load) encode(t loader.Tensor, data []byte) (ready, error) {
	f := l.plan.fills[t.Name]
	if f.format.Kind == quant.Affine {
		m, err := l.coded(t, f, data)
		return ready{matrix: m}, err
	}
	if !finite(data, f.format.Kind) {
		return ready{}, errNotFinite
	}
	if f.vector {
		return ready{vector: widen(data, f.format.Kind)}, nil
	}
	m := quant.Matrix{Rows: f.matrices * f.rows, Cols: f.cols, Format: f.format, Data: data}
	if want := l.plan.Weights[f.index].Shape.Format; want != f.format {
		m, err := quant.Encode(m, want)
		return ready{matrix: m}, err
	}
	return ready{matrix: m}, m.Check()
}

var errNotFinite = errors.New("holds a NaN or an infinity")

// coded joins codes with their scales and biases, and widens them to the bits of the weight.
func (l *load) coded(t loader.Tensor, f fill, data []byte) (m quant.Matrix, err error) {
	m = quant.Matrix{Rows: f.matrices * f.rows, Cols: f.cols, Format: f.format, Data: data, ScaleKind: f.scales}
	module := strings.TrimSuffix(t.Name, ".weight")
	if m.Scales, err = l.factors(module+scalesSuffix, f.scales); err != nil {
		return m, err
	}
	if m.Biases, err = l.factors(module+biasesSuffix, f.scales); err != nil {
		return m, err
	}
	if err := m.Check(); err != nil {
		return m, err
	}
	return m.Widen(l.plan.Weights[f.index].Shape.Format.Bits), nil
}

// factors reads scales or biases, wherever in the checkpoint they are.
func (l *load) factors(name string, kind quant.Kind) ([]byte, error) {
	data, err := l.tensors.ReadTensor(name, nil)
	if err != nil {
		return nil, err
	}
	if !finite(data, kind) {
		return nil, fmt.Errorf("tensor %q: %w", name, errNotFinite)
	}
	return data, nil
}

func (l *load) upload(t loader.Tensor, r ready) error {
	f := l.plan.fills[t.Name]
	if f.vector {
		copy(l.vectors[f.index][f.at.Row:], r.vector)
		return nil
	}
	w, at := *l.plan.Weights[f.index].dst, f.at
	for i := range f.matrices {
		if err := l.dev.Fill(w, at, r.matrix.Slice(i*f.rows, (i+1)*f.rows)); err != nil {
			return err
		}
		at.Expert++
	}
	return nil
}

// write sends the vectors once all of their parts are there.
func (l *load) write() error {
	for i, v := range l.plan.Vectors {
		if err := l.dev.Write(*v.dst, l.vectors[i]); err != nil {
			return fmt.Errorf("write %q: %w", v.Name, err)
		}
	}
	return nil
}
