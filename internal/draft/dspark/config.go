package dspark

import (
	"encoding/json"
	"fmt"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

const (
	configName = "config.json"
	blockKeys  = "dflash_config" // what DSpark took over from DFlash
)

// Architecture is what config.json calls the one packaging that is read: LiquidAI's drafters of LFM2.5.
const Architecture = "Lfm2DSparkDraftModel"

const modelType = "qwen3" // the stack is built like one

// Limits beyond those of package model.
const (
	maxBlock = 32  // every release has 7 or 9; the engine verifies no more than 32 rows of a lane
	maxRank  = 256 // every release has 256; the chain reads [vocabulary, rank] for each guess
)

// config is what config.json says, checked against the target.
type config struct {
	model.HeadShape
	hidden, vocab, layers, ff int
	eps                       float32
	theta                     float64
	pairing                   backend.Pairing
	taps                      []int // target_layer_ids
	block                     int   // guesses of a round, and rows of its block
	mask                      int32 // the id that stands for what is to be guessed
	rank                      int   // of the Markov head
	confidence, withMarkov    bool  // the confidence head, and whether it sees the Markov embedding
	quantized                 model.Quantization
}

// tapWidth is the width of a row of taps.
func (c *config) tapWidth() int { return len(c.taps) * c.hidden }

// confidenceWidth is the number of inputs of the confidence head.
func (c *config) confidenceWidth() int {
	if c.withMarkov {
		return c.hidden + c.rank
	}
	return c.hidden
}

// readConfig parses data, the contents of config.json, and refuses by name whatever would make a drafter
// that guesses at random for this target.
func readConfig(data []byte, target model.Info) (config, error) {
	f, err := model.ReadFields(configName, data)
	if err != nil {
		return config{}, err
	}
	kind(f)
	if err := f.Err(); err != nil { // of another kind nothing else need be said
		return config{}, err
	}
	b, err := nested(data, blockKeys)
	if err != nil {
		return config{}, err
	}
	c := config{}
	c.stack(f, target)
	c.readBlock(f, b, target)
	c.heads(f)
	refuse(f)
	c.quantized = f.Quantization()
	if err := f.Err(); err != nil {
		return config{}, err
	}
	return c, b.Err()
}

// nested reads the object under key.
func nested(data []byte, key string) (*model.Fields, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("%s: not a JSON object: %w", configName, err)
	}
	raw, ok := keys[key]
	if !ok {
		return nil, fmt.Errorf("%s: no %q, which names the layers to watch and the mask token", configName, key)
	}
	return model.ReadFields(configName+": "+key, raw)
}

// kind refuses what is not a drafter of this packaging.
func kind(f *model.Fields) {
	if names := f.Strings("architectures"); len(names) != 1 || names[0] != Architecture {
		f.Failf("\"architectures\" is %.60q; as a drafter only [%q] is supported", names, Architecture)
	}
	if t := f.StringOr("", "model_type"); t != modelType {
		f.Failf("\"model_type\" is %.60q; %s has %q", t, Architecture, modelType)
	}
}

// stack reads the transformer between the borrowed ends.
func (c *config) stack(f *model.Fields, target model.Info) {
	n := f.Info(nil)
	same(f, "hidden_size", n.Hidden, target.Hidden)
	same(f, "vocab_size", n.Vocab, target.Vocab)
	c.hidden, c.vocab, c.layers = n.Hidden, n.Vocab, n.Layers
	c.HeadShape = f.HeadShape(c.hidden)
	c.ff = f.Int(1, model.MaxWidth, "intermediate_size")
	c.eps = f.EpsOr(1e-5, "rms_norm_eps")
	f.LayerTypes(c.layers, model.FullAttention)
	if c.theta = f.RopeTheta(0); c.theta == 0 {
		f.Failf("no \"rope_theta\"")
	}
	if !f.Has("rope_is_neox_style") {
		f.Failf("no \"rope_is_neox_style\": false turns elements 2i and 2i+1 of a head together, true i and i+D/2; write the one that the drafter was trained with")
	}
	c.pairing = backend.Interleaved
	if f.BoolOr(false, "rope_is_neox_style") {
		c.pairing = backend.HalfSplit
	}
}

func same(f *model.Fields, key string, got, target int) {
	if got != target {
		f.Failf("%q is %d, the target's is %d: the drafter was made for another model", key, got, target)
	}
}

// readBlock reads what is watched and what is guessed; b is the nested object.
func (c *config) readBlock(f, b *model.Fields, target model.Info) {
	same(b, "num_target_layers", b.Int(1, model.MaxLayers, "num_target_layers"), target.Layers)
	c.taps = b.Ints("target_layer_ids")
	if len(c.taps) == 0 {
		b.Failf("no \"target_layer_ids\"")
	}
	for i, l := range c.taps {
		if l < 0 || l >= target.Layers || i > 0 && l <= c.taps[i-1] {
			b.Failf("\"target_layer_ids\" holds %d at place %d; they must ascend and be between 0 and %d", l, i, target.Layers-1)
			break
		}
	}
	c.mask = int32(b.Int(0, c.vocab-1, "mask_token_id"))
	size := f
	if b.Has("block_size") {
		size = b
	}
	c.block = size.Int(1, maxBlock, "block_size")
}

// heads reads the Markov head and the confidence head.
func (c *config) heads(f *model.Fields) {
	f.Only("markov_head_type", `"vanilla"`)
	c.rank = f.Int(1, maxRank, "markov_rank")
	c.confidence = f.BoolOr(false, "enable_confidence_head")
	c.withMarkov = f.BoolOr(true, "confidence_head_with_markov")
}

// refuse is a fault for every other key that would change the arithmetic, and for those of other packagings.
func refuse(f *model.Fields) {
	f.Only("hidden_act", `"silu"`)
	f.Only("attention_bias", "false")
	f.Only("sample_from_anchor", "true")
	f.Only("projector_type", `"dspark"`)
	f.Only("draft_window_size")
	f.Only("aux_hidden_state_layer_ids") // numbered one higher
	f.RefuseUnknownArithmetic()
}
