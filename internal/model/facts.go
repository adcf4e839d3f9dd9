package model

import (
	"cmp"
	"slices"
)

// Limits on what a config.json may ask for. Each is several times the largest open-weights model
// known, and together they keep every product of two of them far below the largest int.
const (
	MaxVocab   = 1 << 22
	MaxHidden  = 1 << 16
	MaxLayers  = 1 << 10
	MaxContext = 1 << 24 // also the largest whole number up to which float32 counts exactly
	MaxWidth   = 1 << 20 // of a feed-forward
	MaxHeads   = 1 << 10
	MaxHeadDim = 1 << 10
	MaxExperts = 1 << 12
	MaxTopK    = 1 << 6
	maxEOS     = 1 << 8
)

// Info reads the facts that every family has: vocab_size, hidden_size and its older spellings,
// num_hidden_layers, max_position_embeddings, bos_token_id and eos_token_id.
// generation holds the keys of generation_config.json, nil when there is none.
func (f *Fields) Info(generation *Fields, hiddenNames ...string) Info {
	n := Info{
		Arch:    f.StringOr("", "model_type"),
		Vocab:   f.Int(1, MaxVocab, "vocab_size"),
		Hidden:  f.Int(1, MaxHidden, append([]string{"hidden_size"}, hiddenNames...)...),
		Layers:  f.Int(1, MaxLayers, "num_hidden_layers"),
		Context: f.Int(1, MaxContext, "max_position_embeddings"),
	}
	n.BOS = int32(f.IntOr(-1, 0, n.Vocab-1, "bos_token_id"))
	if generation != nil {
		n.EOS = generation.ids("eos_token_id", n.Vocab)
		f.err = cmp.Or(f.err, generation.err)
	}
	for _, id := range f.ids("eos_token_id", n.Vocab) {
		if !slices.Contains(n.EOS, id) {
			n.EOS = append(n.EOS, id)
		}
	}
	return n
}

// ids is a token id or a list of them, nil where key is absent.
func (f *Fields) ids(key string, vocab int) []int32 {
	if !f.Has(key) {
		return nil
	}
	var list []int32
	if f.keys[key][0] != '[' {
		return []int32{int32(f.Int(0, vocab-1, key))}
	}
	if f.list(key, "token ids", &list); len(list) > maxEOS {
		f.Failf("%q has %d token ids, more than %d", key, len(list), maxEOS)
		return nil
	}
	for _, id := range list {
		if id < 0 || int(id) >= vocab {
			f.Failf("%q holds %d, not between 0 and %d", key, id, vocab-1)
			return nil
		}
	}
	return list
}

// EpsOr is the epsilon of the RMS norms, under the first of names that is there.
func (f *Fields) EpsOr(absent float64, names ...string) float32 {
	const smallest, largest = 1e-12, 1e-2 // beyond them it would vanish beside a mean square, or drown it
	return float32(f.FloatOr(absent, smallest, largest, names...))
}

// HeadShape is the geometry of grouped attention: Q query heads over KV key and value heads of Dim elements.
type HeadShape struct{ Q, KV, Dim int }

// HeadShape reads num_attention_heads, num_key_value_heads and head_dim. Without the last, the
// heads share the hidden width out evenly.
func (f *Fields) HeadShape(hidden int, qNames ...string) HeadShape {
	q := f.Int(1, MaxHeads, append([]string{"num_attention_heads"}, qNames...)...)
	h := HeadShape{Q: q, KV: f.IntOr(q, 1, MaxHeads, "num_key_value_heads")}
	if q%h.KV != 0 {
		f.Failf("%d query heads do not divide over %d key and value heads", q, h.KV)
	}
	if !f.Has("head_dim") && hidden%q != 0 {
		f.Failf("\"hidden_size\" is %d, which %d heads do not divide", hidden, q)
	}
	h.Dim = f.IntOr(hidden/q, 2, MaxHeadDim, "head_dim")
	if h.Dim < 2 || h.Dim%2 != 0 || h.Dim > MaxHeadDim {
		f.Failf("heads have %d elements; rotary embedding needs an even number up to %d", h.Dim, MaxHeadDim)
	}
	return h
}

// Layer types of layer_types.
const (
	FullAttention = "full_attention"
	ShortConv     = "conv"
)

// LayerTypes is the kind of every layer. kinds are those that the family has; a family of one kind needs
// no key. full_attn_idxs is the older form, attention layers by number and everything else a
// convolution; a config with both must agree with itself.
func (f *Fields) LayerTypes(layers int, kinds ...string) []string {
	types, older := f.Strings("layer_types"), f.attentionLayers(layers)
	switch {
	case types == nil && older == nil:
		if len(kinds) > 1 {
			f.Failf("no \"layer_types\" and no \"full_attn_idxs\"")
		}
		return slices.Repeat(kinds[:1], layers)
	case types == nil:
		types = older
	case older != nil && !slices.Equal(types, older):
		f.Failf("\"layer_types\" and \"full_attn_idxs\" do not agree")
	}
	if len(types) != layers {
		f.Failf("\"layer_types\" has %d entries for %d layers", len(types), layers)
		return slices.Repeat(kinds[:1], layers)
	}
	for l, kind := range types {
		if !slices.Contains(kinds, kind) {
			f.Failf("layer %d is of type %q, which is not supported; only %q is", l, clip([]byte(kind)), kinds)
		}
	}
	return types
}

// attentionLayers spells full_attn_idxs out as layer types, nil where it is absent.
func (f *Fields) attentionLayers(layers int) []string {
	if !f.Has("full_attn_idxs") {
		return nil
	}
	types := slices.Repeat([]string{ShortConv}, layers)
	for _, l := range f.Ints("full_attn_idxs") {
		if l < 0 || l >= layers {
			f.Failf("\"full_attn_idxs\" holds %d, not between 0 and %d", l, layers-1)
			break
		}
		types[l] = FullAttention
	}
	return types
}

// neutral are keys that change the arithmetic of a decoder unless they hold the given literals.
// They belong to relatives of the families here; a checkpoint that sets one would load and be wrong.
var neutral = map[string][]string{
	"attention_chunk_size":    nil,
	"attention_multiplier":    {"1", "1.0"},
	"attn_logit_softcapping":  nil,
	"clip_qkv":                nil,
	"embedding_multiplier":    {"1", "1.0"},
	"final_logit_softcapping": nil,
	"hidden_act":              {`"silu"`, `"swish"`},
	"is_causal":               {"true"},
	"logit_scale":             {"1", "1.0"},
	"logits_scaling":          {"1", "1.0"},
	"no_rope_layers":          nil,
	"query_pre_attn_scalar":   nil,
	"residual_multiplier":     {"1", "1.0"},
	"rope_interleaved":        {"false"},
	"use_sliding_window":      {"false"},
}

// RefuseUnknownArithmetic is a fault for every key known to change the arithmetic of a decoder in a
// way that no family here has.
func (f *Fields) RefuseUnknownArithmetic() {
	for _, key := range sortedKeys(neutral) {
		f.Only(key, neutral[key]...)
	}
	if f.BoolOr(true, "use_sliding_window") {
		f.Only("sliding_window")
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
