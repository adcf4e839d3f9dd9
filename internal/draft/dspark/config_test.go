package dspark

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

// with is the small config with one key changed; nil takes it away. A dot leads into the nested object.
func with(key string, value any) map[string]any {
	config := smallConfig()
	at, name := config, key
	if outer, inner, ok := strings.Cut(key, "."); ok {
		at, name = maps.Clone(config[outer].(map[string]any)), inner
		config[outer] = at
	}
	at[name] = value
	if value == nil {
		delete(at, name)
	}
	return config
}

func TestConfig(t *testing.T) {
	c, err := readConfig(text(smallConfig()), smallTarget)
	if err != nil {
		t.Fatal(err)
	}
	if c.block != 5 || c.mask != 3 || !slices.Equal(c.taps, []int{0, 3}) || c.pairing != backend.Interleaved || c.confidenceWidth() != 64 || c.tapWidth() != 96 {
		t.Errorf("%+v", c)
	}
	for _, v := range []struct {
		key   string
		value any
		holds func(c config) bool
	}{
		{"rope_is_neox_style", true, func(c config) bool { return c.pairing == backend.HalfSplit }},
		{"dflash_config.block_size", 7, func(c config) bool { return c.block == 7 }},
		{"confidence_head_with_markov", false, func(c config) bool { return c.confidenceWidth() == 48 }},
		{"enable_confidence_head", nil, func(c config) bool { return !c.confidence }},
		{"rope_parameters", map[string]any{"rope_theta": 1e4, "rope_type": "default"}, func(c config) bool { return c.theta == 1e4 }},
		{"rms_norm_eps", 1e-6, func(c config) bool { return c.eps == 1e-6 }},
		{"sliding_window", nil, func(config) bool { return true }},
	} {
		if c, err := readConfig(text(with(v.key, v.value)), smallTarget); err != nil || !v.holds(c) {
			t.Errorf("%s %v: %+v, %v", v.key, v.value, c, err)
		}
	}
}

// release is config.json as LiquidAI ships it.
const release = `{
  "architectures": ["Lfm2DSparkDraftModel"], "model_type": "qwen3", "dtype": "bfloat16",
  "hidden_size": 2048, "num_hidden_layers": 5, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
  "intermediate_size": 6144, "hidden_act": "silu", "rms_norm_eps": 1e-05, "max_position_embeddings": 128000,
  "vocab_size": %d, "rope_theta": %v, "rope_is_neox_style": false,
  "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention"],
  "block_size": 9, "markov_rank": 256, "markov_head_type": "vanilla", "enable_confidence_head": true,
  "dflash_config": {"mask_token_id": %d, "target_layer_ids": %s, "num_target_layers": %d}
}`

// TestReleases reads the drafters of LFM2.5 for the targets they are for.
func TestReleases(t *testing.T) {
	for _, v := range []struct {
		name                string
		vocab, mask, layers int
		theta               float64
		taps                string
	}{
		{"1.2B", 65536, 64402, 16, 1e6, "[2,5,8,11,14]"},
		{"2.6B", 128000, 125017, 30, 1e7, "[2,9,17,21,27]"},
		{"8B-A1B", 128000, 125017, 24, 5e6, "[2,6,10,14,18]"},
	} {
		target := model.Info{Vocab: v.vocab, Hidden: 2048, Layers: v.layers, Context: 128000}
		data := fmt.Appendf(nil, release, v.vocab, v.theta, v.mask, v.taps, v.layers)
		c, err := readConfig(data, target)
		if err != nil || len(c.taps) != 5 || c.theta != v.theta || int(c.mask) != v.mask || c.block != 9 {
			t.Errorf("%s: %+v, %v", v.name, c, err)
		}
		// Two values of two bytes for 5 layers of 8 heads of 64 are 10,240 bytes a token.
		s := Shape{Lanes: 1, Pages: 400}
		more := s
		more.Pages++
		grown := footprint(&c, sizesOf(&c, target, more)) - footprint(&c, sizesOf(&c, target, s))
		if want := int64(256 * (10240 + 4*64)); grown != want { // and a row of the rotary table
			t.Errorf("%s: a page takes %d bytes, want %d", v.name, grown, want)
		}
	}
}

// TestConfigRefuses names the key and what is wrong with it, before any weight is read.
func TestConfigRefuses(t *testing.T) {
	for _, v := range []struct {
		key   string
		value any
		want  string
	}{
		{"architectures", []string{"Qwen3DSparkModel"}, `"architectures" is ["Qwen3DSparkModel"]; as a drafter only ["Lfm2DSparkDraftModel"]`},
		{"architectures", nil, `"architectures" is []`},
		{"model_type", "gemma4", `"model_type" is "gemma4"`},
		{"hidden_size", 64, `"hidden_size" is 64, the target's is 48`},
		{"vocab_size", 96, `"vocab_size" is 96, the target's is 97`},
		{"num_hidden_layers", 0, `"num_hidden_layers" is 0`},
		{"intermediate_size", 0, `"intermediate_size" is 0`},
		{"num_key_value_heads", 3, `4 query heads do not divide over 3`},
		{"head_dim", 15, `heads have 15 elements`},
		{"hidden_act", "gelu", `"hidden_act" is "gelu"`},
		{"hidden_act", "relu", `"hidden_act" is "relu"`},
		{"rope_theta", 1e100, `"rope_theta" is 1e+100`},
		{"rope_theta", 1e39, `"rope_theta" is 1e+39`},
		{"rope_theta", 0, `"rope_theta" is 0`},
		{"rope_theta", -1e4, `"rope_theta" is -10000`},
		{"rope_theta", "1e4", `"rope_theta" is "1e4", not a number`},
		{"rope_theta", nil, `no "rope_theta"`},
		{"rope_parameters", map[string]any{"rope_theta": 1e100}, `"rope_parameters.rope_theta" is 1e+100`},
		{"rope_parameters", map[string]any{"rope_type": "yarn"}, `"rope_parameters" has rope_type "yarn"`},
		{"rope_scaling", map[string]any{"type": "yarn"}, `"rope_scaling" has type "yarn"`},
		{"rope_is_neox_style", nil, `no "rope_is_neox_style"`},
		{"rope_is_neox_style", "no", `"rope_is_neox_style" is "no", not true or false`},
		{"layer_types", []string{"full_attention", "sliding_attention"}, `layer 1 is of type "sliding_attention"`},
		{"block_size", 0, `"block_size" is 0, not between 1 and 32`},
		{"block_size", 33, `"block_size" is 33`},
		{"block_size", 1 << 40, `"block_size" is 1099511627776`},
		{"block_size", nil, `no "block_size"`},
		{"dflash_config.block_size", 0, `config.json: dflash_config: "block_size" is 0`},
		{"dflash_config", nil, `no "dflash_config"`},
		{"dflash_config", []int{1}, `config.json: dflash_config: not a JSON object`},
		{"dflash_config.mask_token_id", 97, `"mask_token_id" is 97, not between 0 and 96`},
		{"dflash_config.mask_token_id", -1, `"mask_token_id" is -1`},
		{"dflash_config.mask_token_id", nil, `no "mask_token_id"`},
		{"dflash_config.num_target_layers", 5, `"num_target_layers" is 5, the target's is 4`},
		{"dflash_config.num_target_layers", nil, `no "num_target_layers"`},
		{"dflash_config.target_layer_ids", []int{}, `no "target_layer_ids"`},
		{"dflash_config.target_layer_ids", []int{0, 4}, `"target_layer_ids" holds 4 at place 1`},
		{"dflash_config.target_layer_ids", []int{-1, 2}, `"target_layer_ids" holds -1 at place 0`},
		{"dflash_config.target_layer_ids", []int{2, 2}, `"target_layer_ids" holds 2 at place 1; they must ascend`},
		{"dflash_config.target_layer_ids", []int{3, 0}, `"target_layer_ids" holds 0 at place 1; they must ascend`},
		{"dflash_config.target_layer_ids", "0,3", `"target_layer_ids" is "0,3", not a list`},
		{"markov_rank", 257, `"markov_rank" is 257, not between 1 and 256`},
		{"markov_rank", 0, `"markov_rank" is 0`},
		{"markov_rank", nil, `no "markov_rank"`},
		{"markov_head_type", "gated", `"markov_head_type" is "gated"`},
		{"markov_head_type", "rnn", `"markov_head_type" is "rnn"`},
		{"attention_bias", true, `"attention_bias" is true`},
		{"sample_from_anchor", false, `"sample_from_anchor" is false`},
		{"draft_window_size", 64, `"draft_window_size" is 64`},
		{"sliding_window", 512, `"sliding_window" is 512`},
		{"final_logit_softcapping", 30, `"final_logit_softcapping" is 30`},
		{"aux_hidden_state_layer_ids", []int{1, 4}, `"aux_hidden_state_layer_ids"`},
		{"quantization", map[string]any{"bits": 4}, `"quantization"`},
	} {
		_, err := readConfig(text(with(v.key, v.value)), smallTarget)
		if err == nil || !strings.HasPrefix(err.Error(), "config.json: ") || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s %v: got error %v, want %s", v.key, v.value, err, v.want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(text(smallConfig()))
	f.Add(text(with("dflash_config", nil)))
	f.Add(text(with("rope_theta", 1e300)))
	f.Add([]byte(`{"architectures":["Lfm2DSparkDraftModel"],"model_type":"qwen3","dflash_config":null}`))
	f.Add([]byte(`{"dflash_config":{"target_layer_ids":[9999999999999999999]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readConfig(data, smallTarget)
		if err != nil {
			return
		}
		if c.hidden != 48 || c.vocab != 97 || c.block < 1 || c.block > maxBlock || c.mask < 0 || c.mask > 96 || c.rank < 1 || c.rank > maxRank {
			t.Errorf("accepted %+v", c)
		}
		for i, l := range c.taps {
			if l < 0 || l > 3 || i > 0 && l <= c.taps[i-1] {
				t.Errorf("accepted taps %v", c.taps)
			}
		}
		if theta := float32(c.theta); len(c.taps) == 0 || !(theta >= 1) || math.IsInf(float64(theta), 0) || c.Q%c.KV != 0 || c.Dim%2 != 0 {
			t.Errorf("accepted %+v", c)
		}
	})
}

// TestOpenRefuses looks at the tensors and the options.
func TestOpenRefuses(t *testing.T) {
	rename := func(list []loader.Tensor, from, to string) []loader.Tensor {
		for i := range list {
			if list[i].Name == from {
				list[i].Name = to
			}
		}
		return list
	}
	shape := func(name string, shape ...int) []loader.Tensor {
		list := tensors()
		for i := range list {
			if list[i].Name == name {
				list[i].Shape = shape
			}
		}
		return list
	}
	for _, v := range []struct {
		name    string
		config  map[string]any
		tensors []loader.Tensor
		bits    int
		want    string
	}{
		{"4 bits", smallConfig(), tensors(), 4, "drafter bits are 4: only 0, the weights as released, and 8"},
		{"16 bits", smallConfig(), tensors(), 16, "drafter bits are 16"},
		{"negative bits", smallConfig(), tensors(), -1, "drafter bits are -1"},
		{"32 bits", smallConfig(), tensors(), 32, "drafter bits are 32"},
		{"config", with("block_size", 0), tensors(), 0, `"block_size" is 0`},
		{"missing tensor", smallConfig(), rename(tensors(), "fc.weight", "fd.weight"), 0, `fd.weight`},
		{"fc of another number of taps", with("dflash_config.target_layer_ids", []int{0, 1, 3}), tensors(), 0, `"fc.weight" is [48 96], the config makes it [48 144]`},
		{"w2 of another rank", smallConfig(), shape("markov_head.markov_w2.weight", 97, 8), 0, `"markov_head.markov_w2.weight" is [97 8]`},
		{"w1 of another vocabulary", smallConfig(), shape("markov_head.markov_w1.weight", 96, 16), 0, `"markov_head.markov_w1.weight" is [96 16]`},
		{"confidence without markov", with("confidence_head_with_markov", false), tensors(), 0, `"confidence_head.proj.weight" is [1 64]`},
		{"a name twice after its prefix", smallConfig(), append(tensors(), loader.Tensor{Name: "model.fc.weight", DType: loader.BF16, Shape: []int{48, 96}}), 0, `fc.weight`},
		{"gated head", smallConfig(), append(tensors(), loader.Tensor{Name: "markov_head.gate.weight", DType: loader.BF16, Shape: []int{16, 64}}), 0, `markov_head.gate.weight`},
	} {
		t.Run(v.name, func(t *testing.T) {
			_, err := Open(write(t, v.config, v.tensors, nil), smallTarget, Options{Bits: v.bits})
			if err == nil || !strings.Contains(err.Error(), v.want) {
				t.Errorf("got error %v, want %s", err, v.want)
			}
		})
	}
}
