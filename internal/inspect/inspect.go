// Package inspect says what a checkpoint is, from its headers: what it holds, what it will take to run, which
// drafter fits, and why it is refused where it is.
//
// Start with [Open]. No weight is read but by [Report.Digest].
package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

// Report is what is known of a checkpoint. Where Refused is set, Model is nil.
type Report struct {
	Config  string   `json:"config_sha256"`
	Bytes   int64    `json:"bytes"` // of all shards
	Tensors []Group  `json:"tensors"`
	Shards  []Shard  `json:"shards"`
	Model   *Model   `json:"model,omitempty"`
	Text    *Text    `json:"text,omitempty"`
	Drafter *Drafter `json:"drafter,omitempty"`
	Refused string   `json:"refused,omitempty"` // why tfbatch does not run it

	snapshot *loader.Snapshot
}

// Group is a number of tensors or weights of one kind.
type Group struct {
	Kind  string `json:"kind"` // as safetensors spells it, or the format of a weight
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Shard is one file of weights. SHA256 is empty until Digest has read it.
type Shard struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Model is a checkpoint that a family has understood.
type Model struct {
	Arch    string  `json:"arch"`
	Vocab   int     `json:"vocabulary"`
	Hidden  int     `json:"hidden"`
	Layers  int     `json:"layers"` // a drafter may watch each of them
	Context int     `json:"context"`
	BOS     int32   `json:"bos"`
	EOS     []int32 `json:"eos"`
	Weights []Group `json:"weights"`      // on the device, before any padding
	Token   int64   `json:"token_bytes"`  // of K and V, for every position of a lane
	Lane    int64   `json:"lane_bytes"`   // of other state, for every lane
	Resides int64   `json:"weight_bytes"` // of all weights

	info model.Info
}

// Drafter is whether a drafter fits the model.
type Drafter struct {
	Block   int     `json:"block,omitempty"` // most guesses of a round
	Taps    []int   `json:"taps,omitempty"`  // layers that it watches
	Weights []Group `json:"weights,omitempty"`
	Refused string  `json:"refused,omitempty"`
}

// Open reads the headers of the checkpoint in fsys. It is an error only where there are none: whatever else is
// wrong is told by the report.
func Open(fsys fs.FS) (*Report, error) {
	s, err := loader.Open(fsys)
	if err != nil {
		return nil, err
	}
	r := &Report{Bytes: s.Bytes(), snapshot: s, Tensors: groups(s.All(), func(t loader.Tensor) (string, int64) { return string(t.DType), t.Size })}
	for _, sh := range s.Shards() {
		r.Shards = append(r.Shards, Shard{Name: sh.Name, Bytes: sh.Size})
	}
	config, err := s.ReadFile("config.json", model.MaxConfigBytes)
	if err == nil {
		sum := sha256.Sum256(config)
		r.Config = hex.EncodeToString(sum[:])
	}
	c, err := families.Open(s)
	if err != nil {
		r.Refused = err.Error()
		if isDrafter(config) {
			r.Refused += "; it is a drafter: inspect the model that it was made for, with --drafter"
		}
		return r, nil
	}
	r.Model, r.Text = describe(c), readText(s, c.Info.EOS)
	return r, nil
}

func isDrafter(config []byte) bool {
	f, err := model.ReadFields("config.json", config)
	return err == nil && slices.Contains(f.Strings("architectures"), dspark.Architecture)
}

// groups counts values by kind, in the order of the kinds' names.
func groups[T any](all func(yield func(T) bool), kind func(T) (string, int64)) []Group {
	byKind := make(map[string]Group)
	for v := range all {
		name, bytes := kind(v)
		g := byKind[name]
		byKind[name] = Group{name, g.Count + 1, g.Bytes + bytes}
	}
	var list []Group
	for _, name := range slices.Sorted(maps.Keys(byKind)) {
		list = append(list, byKind[name])
	}
	return list
}

func describe(c *model.Checkpoint) *Model {
	n := c.Info
	m := &Model{
		Arch: n.Arch, Vocab: n.Vocab, Hidden: n.Hidden, Layers: n.Layers, Context: n.Context, BOS: n.BOS, EOS: n.EOS,
		Weights: planned(c.Plan), Resides: c.Plan.Bytes(), info: n,
	}
	m.Token, m.Lane = stateOf(c)
	return m
}

func planned(p *model.Plan) []Group {
	list := groups(slices.Values(p.Weights), func(w model.PlannedWeight) (string, int64) { return w.Shape.Format.String(), w.Bytes() })
	if len(p.Vectors) > 0 {
		vectors := Group{Kind: "vectors", Count: len(p.Vectors)}
		for _, v := range p.Vectors {
			vectors.Bytes += v.Bytes()
		}
		list = append(list, vectors)
	}
	return list
}

// stateOf finds what a position and a lane cost from what more of them add. The pages are beyond the context,
// where rotary tables have stopped to grow.
func stateOf(c *model.Checkpoint) (token, lane int64) {
	beyond := c.Info.Context/backend.PageKeys + 1
	bytes := func(lanes, pages int) int64 {
		return c.Footprint(model.Shape{Lanes: lanes, Pages: pages, Rows: 1, Heads: 1, Window: 1})
	}
	one := bytes(1, beyond)
	return (bytes(1, beyond+1) - one) / backend.PageKeys, bytes(2, beyond) - one
}

// With says whether the drafter in fsys fits the model.
func (r *Report) With(fsys fs.FS) error {
	s, err := loader.Open(fsys)
	if err != nil || r.Model == nil {
		return err
	}
	c, err := dspark.Open(s, r.Model.info, dspark.Options{})
	if err != nil {
		r.Drafter = &Drafter{Refused: err.Error()}
		return nil
	}
	r.Drafter = &Drafter{Block: c.Block, Taps: c.Taps, Weights: planned(c.Plan)}
	return nil
}

// Digest reads every shard to its end and fills in the digests.
func (r *Report) Digest(ctx context.Context, progress func(n int64)) error {
	digests, err := loader.Load(ctx, r.snapshot, loader.Steps[struct{}]{
		Want: func(loader.Tensor) bool { return false }, Progress: progress,
	})
	for i, d := range digests {
		r.Shards[i].SHA256 = d.SHA256
	}
	return err
}
