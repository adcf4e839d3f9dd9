package model

import (
	"encoding/json"
	"slices"
)

// Rope is how positions turn the halves of a head: by which base, and how its angles were stretched for
// longer contexts than the model was first trained on.
type Rope struct {
	Theta float64 // base of the angles
	Kind  RopeKind

	Factor    float64 // by which the slow angles are divided; 1 unless stretched
	Low, High float64 // of RopeLlama3: turns within Original below which an angle is slow, and above which it is fast
	Original  int     // of RopeLlama3: positions that the model was first trained on
}

// RopeKind is a way to stretch angles.
type RopeKind uint8

// The kinds of rope_type.
const (
	RopeDefault RopeKind = iota // as they are
	RopeLinear                  // all alike
	RopeLlama3                  // slow ones, fast ones not, and those between in part
)

var ropeKinds = map[string]RopeKind{"default": RopeDefault, "linear": RopeLinear, "llama3": RopeLlama3}

// ropeMembers are what a kind needs beside the base.
var ropeMembers = map[RopeKind][]string{
	RopeLinear: {"factor"},
	RopeLlama3: {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}

// Rotary base: below 1 the angles would grow without bound; above the limit its slowest angle is no normal float32.
const (
	minTheta = 1
	maxTheta = 1e30
)

// maxStretch is far from any factor in use (2 to 64), for all three of Llama 3.
const maxStretch = 1 << 16

// The two objects that tell of rotation, the newer first, and the base in it.
const (
	ropeParameters = "rope_parameters"
	ropeScaling    = "rope_scaling"
	ropeTheta      = "rope_theta"
)

// Rope reads how positions turn heads. The base is rope_parameters.rope_theta, else rope_theta, else theta, else
// absent, where 0 means that there must be one; those that are there must agree. The way to stretch it is in
// rope_parameters or, as older configs have it, in rope_scaling. What is not known is refused by name.
func (f *Fields) Rope(absent float64) Rope {
	f.Only("partial_rotary_factor", "1", "1.0")
	r, older := f.ropeIn(ropeParameters), f.ropeIn(ropeScaling)
	switch {
	case r.Kind == RopeDefault:
		r = older
	case older.Kind != RopeDefault && older != r:
		f.Failf("%q and %q do not agree", ropeParameters, ropeScaling)
	}
	r.Theta = f.ropeTheta(absent)
	return r
}

// RopeTheta is the base, for a model whose angles are not stretched.
func (f *Fields) RopeTheta(absent float64) float64 {
	r := f.Rope(absent)
	if r.Kind != RopeDefault {
		f.Failf("its rotary embedding is stretched, which is not supported here; only \"default\" is")
	}
	return r.Theta
}

// ropeTheta is the base, wherever it is.
func (f *Fields) ropeTheta(absent float64) float64 {
	theta := f.FloatOr(absent, minTheta, maxTheta, ropeTheta, "theta")
	named := f.pick([]string{ropeTheta, "theta"}) != ""
	for _, key := range []string{ropeScaling, ropeParameters} {
		raw, ok := f.object(key)[ropeTheta]
		if !ok || string(raw) == "null" {
			continue
		}
		nested := f.float(key+"."+ropeTheta, raw, minTheta, maxTheta)
		if named && nested != theta {
			f.Failf("\"rope_theta\" is %v and \"%s.rope_theta\" is %v; they must agree", theta, key, nested)
		}
		theta, named = nested, true
	}
	if theta == 0 {
		f.Failf("no \"rope_theta\"")
	}
	return theta
}

// ropeIn reads the object under key, but for the base.
func (f *Fields) ropeIn(key string) Rope {
	members := f.object(key)
	r := Rope{Kind: f.ropeKind(key, members), Factor: 1}
	needs := ropeMembers[r.Kind]
	for _, member := range sortedKeys(members) {
		known := member == ropeTheta || member == "rope_type" || member == "type" || slices.Contains(needs, member)
		if !known && string(members[member]) != "null" {
			f.Failf("%q has %q, which is not supported", key, clip([]byte(member)))
		}
	}
	number := func(member string, least float64) float64 {
		raw, ok := members[member]
		if !ok {
			f.Failf("%q has no %q", key, member)
			return least
		}
		return f.float(key+"."+member, raw, least, maxStretch)
	}
	if r.Kind != RopeDefault {
		r.Factor = number("factor", 1)
	}
	if r.Kind != RopeLlama3 {
		return r
	}
	r.Low, r.High = number("low_freq_factor", 1.0/maxStretch), number("high_freq_factor", 1.0/maxStretch)
	own := &Fields{file: f.file, keys: members}
	r.Original = own.Int(1, MaxContext, "original_max_position_embeddings")
	if own.err != nil {
		f.Failf("%q: %w", key, own.err)
	}
	if r.Low >= r.High {
		f.Failf("%q has \"low_freq_factor\" %v, which is not below \"high_freq_factor\" %v", key, r.Low, r.High)
	}
	return r
}

// ropeKind is the type of the object under key, in either spelling.
func (f *Fields) ropeKind(key string, members map[string]json.RawMessage) (kind RopeKind) {
	own := &Fields{file: f.file, keys: members}
	for _, name := range []string{"rope_type", "type"} {
		if !own.Has(name) {
			continue
		}
		var text string
		_ = json.Unmarshal(members[name], &text)
		k, ok := ropeKinds[text]
		if !ok {
			f.Failf("%q has %s %s, which is not supported; only \"default\", \"linear\" and \"llama3\" are", key, name, clip(members[name]))
		}
		if name == "type" && own.Has("rope_type") && k != kind {
			f.Failf("%q has \"rope_type\" %s and \"type\" %s; they must agree", key, clip(members["rope_type"]), clip(members["type"]))
		}
		kind = k
	}
	return kind
}
