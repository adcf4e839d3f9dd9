package families_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tfbatch/internal/backend"
	"tfbatch/internal/builtin"
	"tfbatch/internal/cpu"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

// testdata is where a family keeps its reference checkpoint.
var testdata = map[string]string{
	"lfm2": "../model/lfm2/testdata", "lfm2_moe": "../model/lfm2moe/testdata",
	"llama": "../model/llama/testdata", "qwen3": "../model/qwen3/testdata",
	"qwen3_moe": "../model/qwen3moe/testdata",
}

// config is config.json of a reference checkpoint.
func config(t testing.TB, family string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(testdata[family] + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens the weights of a reference checkpoint under another config.json.
func open(t testing.TB, family string, config []byte) (*model.Checkpoint, error) {
	t.Helper()
	weights, err := os.ReadFile(testdata[family] + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return openFiles(t, fstest.MapFS{"model.safetensors": {Data: weights}, "config.json": {Data: config}})
}

func openFiles(t testing.TB, files fstest.MapFS) (*model.Checkpoint, error) {
	t.Helper()
	s, err := loader.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return families.Open(s)
}

// set is the given keys over the family's config; a nil value removes one.
func set(t testing.TB, family string, keys map[string]any) []byte {
	t.Helper()
	c := config(t, family)
	maps.Copy(c, keys)
	for k, v := range keys {
		if v == nil {
			delete(c, k)
		}
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type keys = map[string]any

func TestConfigs(t *testing.T) {
	for name, c := range map[string]struct {
		family string
		keys   keys
		want   string // "" for a checkpoint that opens
	}{
		"as it is":                {"lfm2", nil, ""},
		"no architectures":        {"lfm2", keys{"architectures": nil}, ""},
		"unknown architecture":    {"lfm2", keys{"architectures": []string{"GemmaForCausalLM"}}, `"GemmaForCausalLM" (model_type "lfm2") is not supported; there are Lfm2ForCausalLM, Lfm2MoeForCausalLM, LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM`},
		"unknown model type":      {"lfm2", keys{"architectures": nil, "model_type": "gemma"}, `model_type "gemma"`},
		"two architectures":       {"lfm2", keys{"architectures": []string{"A", "B"}}, "lists 2"},
		"architecture at odds":    {"lfm2", keys{"model_type": "qwen3"}, "Lfm2ForCausalLM has \"lfm2\""},
		"drafter":                 {"qwen3", keys{"architectures": []string{"Lfm2DSparkDraftModel"}}, `"Lfm2DSparkDraftModel"`},
		"older spellings":         {"lfm2", keys{"num_attention_heads": nil, "num_heads": 4, "norm_eps": nil, "block_norm_eps": 1e-5, "block_dim": 64, "tie_word_embeddings": nil, "tie_embedding": true}, ""},
		"widths at odds":          {"lfm2", keys{"block_dim": 128}, "must agree"},
		"hidden":                  {"lfm2", keys{"hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 4}, "the config makes it [512 128]"},
		"negative hidden":         {"lfm2", keys{"hidden_size": -64}, "not between"},
		"huge hidden":             {"lfm2", keys{"hidden_size": 1e15}, "not between 1 and"},
		"layers":                  {"lfm2", keys{"num_hidden_layers": 5}, "6 entries for 5 layers"},
		"huge layers":             {"lfm2", keys{"num_hidden_layers": 1 << 40}, "not between"},
		"vocabulary":              {"lfm2", keys{"vocab_size": 1 << 30}, "not between"},
		"no vocabulary":           {"lfm2", keys{"vocab_size": nil}, `no "vocab_size"`},
		"bos":                     {"lfm2", keys{"bos_token_id": 512}, "not between 0 and 511"},
		"eos":                     {"lfm2", keys{"eos_token_id": []int{7, 512}}, "holds 512"},
		"epsilon":                 {"lfm2", keys{"norm_eps": 0}, "not between"},
		"kernel":                  {"lfm2", keys{"conv_L_cache": 4}, "the config makes it [64 1 4]"},
		"huge kernel":             {"lfm2", keys{"conv_L_cache": 1 << 20}, "not between"},
		"bias that is not there":  {"lfm2", keys{"conv_bias": true}, "model.layers.0.conv.in_proj.bias"},
		"untied without a head":   {"lfm2", keys{"tie_word_embeddings": false}, "1 tensors missing: lm_head.weight"},
		"yarn":                    {"lfm2", keys{"rope_parameters": keys{"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0}}, `rope_type "yarn"`},
		"theta twice":             {"lfm2", keys{"rope_theta": 2e6}, "must agree"},
		"theta in f32 infinite":   {"lfm2", keys{"rope_parameters": keys{"rope_theta": 1e100}}, "not between"},
		"codes of seven bits":     {"lfm2", keys{"quantization": keys{"bits": 7, "group_size": 64}}, "7 bits are not supported"},
		"quantized by GPTQ":       {"lfm2", keys{"quantization_config": keys{"quant_method": "gptq"}}, "tfbatch quantize"},
		"quantized by ModelOpt":   {"llama", keys{"quantization_config": keys{"quant_method": "modelopt", "quant_algo": "NVFP4"}}, `"modelopt"`},
		"FP8 in blocks":           {"qwen3", keys{"quantization_config": keys{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": []int{128, 128}}}, `"fp8", which is not supported; take the checkpoint that it was made from`},
		"MXFP4":                   {"llama", keys{"quantization": keys{"mode": "mxfp4", "bits": 4, "group_size": 32}}, `"mxfp4" (micro-scaling) is not supported; convert`},
		"MXFP8":                   {"llama", keys{"quantization": keys{"mode": "mxfp8", "bits": 8, "group_size": 32}}, `"mxfp8" (micro-scaling)`},
		"NVFP4":                   {"llama", keys{"quantization": keys{"mode": "nvfp4", "bits": 4, "group_size": 16}}, `"nvfp4" (micro-scaling)`},
		"pairs that neighbour":    {"llama", keys{"rope_interleaved": true}, "rope_interleaved"},
		"gelu":                    {"lfm2", keys{"hidden_act": "gelu"}, "hidden_act"},
		"no swiglu":               {"lfm2", keys{"block_use_swiglu": false}, "block_use_swiglu"},
		"no positions":            {"lfm2", keys{"use_pos_enc": false}, "use_pos_enc"},
		"ff by rule":              {"lfm2", keys{"block_auto_adjust_ff_dim": true, "intermediate_size": nil, "block_ff_dim": 280, "block_multiple_of": 64}, ""},
		"ff by rule, not rounded": {"lfm2", keys{"block_auto_adjust_ff_dim": true, "intermediate_size": 288}, ""},
		"ff by factor":            {"lfm2", keys{"block_auto_adjust_ff_dim": true, "block_ff_dim": 144, "block_ffn_dim_multiplier": 2.0, "block_multiple_of": 1}, ""},
		"ff at odds":              {"lfm2", keys{"intermediate_size": 256}, "feed-forward is 192 wide"},
		"ff of the wrong key":     {"lfm2", keys{"block_ff_dim": 256}, "feed-forward is 192 wide"},
		"moe":                     {"lfm2_moe", nil, ""},
		"more than all":           {"lfm2_moe", keys{"num_experts_per_tok": 9}, "not between 1 and 8"},
		"experts":                 {"lfm2_moe", keys{"num_experts": 9}, "the config makes it [9 64]"},
		"huge experts":            {"lfm2_moe", keys{"num_experts": 1 << 30}, "not between"},
		"millions of experts":     {"lfm2_moe", keys{"num_experts": 4096, "num_hidden_layers": 1024, "layer_types": slices.Repeat([]string{"conv"}, 1024)}, "more than 1000 tensors missing"},
		"expert width":            {"lfm2_moe", keys{"moe_intermediate_size": 33}, "the config makes it [33 64]"},
		"dense layers":            {"lfm2_moe", keys{"num_dense_layers": 7}, "not between 0 and 6"},
		"one dense layer more":    {"lfm2_moe", keys{"num_dense_layers": 3}, "model.layers.2.feed_forward.w1.weight"},
		"bias not expected":       {"lfm2_moe", keys{"use_expert_bias": false}, "4 tensors that the model does not have: model.layers.2.feed_forward.expert_bias"},
		"scale":                   {"lfm2_moe", keys{"routed_scaling_factor": 0}, "not between"},
		"scale of text":           {"lfm2_moe", keys{"routed_scaling_factor": "1"}, "not a number"},
		"llama":                   {"llama", nil, ""},
		"llama defaults":          {"llama", keys{"head_dim": nil, "attention_bias": nil, "mlp_bias": nil, "tie_word_embeddings": nil, "rope_parameters": nil, "rope_theta": nil}, ""},
		"llama3 rope":             {"llama", keys{"rope_scaling": keys{"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}, ""},
		"llama3 rope, in part":    {"llama", keys{"rope_scaling": keys{"rope_type": "llama3", "factor": 32.0}}, `"rope_scaling" has no "low_freq_factor"`},
		"linear rope":             {"llama", keys{"rope_scaling": keys{"type": "linear", "factor": 2.0}}, ""},
		"dynamic rope":            {"llama", keys{"rope_scaling": keys{"type": "dynamic", "factor": 2.0}}, `type "dynamic", which is not supported`},
		"llama with biases":       {"llama", keys{"attention_bias": true}, "model.layers.0.self_attn.q_proj.bias"},
		"qwen3":                   {"qwen3", nil, ""},
		"qwen3 without tie":       {"qwen3", keys{"tie_word_embeddings": nil}, ""},
		"qwen3 tied":              {"qwen3", keys{"tie_word_embeddings": true}, ""},
		"qwen3 without head_dim":  {"qwen3", keys{"head_dim": nil}, `no "head_dim"`},
		"qwen3 without theta":     {"qwen3", keys{"rope_parameters": nil}, `no "rope_theta"`},
		"qwen3 moe":               {"qwen3_moe", nil, ""},
		"qwen3 moe, older name":   {"qwen3_moe", keys{"num_local_experts": nil, "num_experts": 8}, ""},
		"qwen3 moe, more sparse":  {"qwen3_moe", keys{"decoder_sparse_step": 1}, "model.layers.0.mlp.gate.weight"},
		"qwen3 moe, more dense":   {"qwen3_moe", keys{"mlp_only_layers": []int{1, 3, 5}}, "model.layers.5.mlp.gate_proj.weight"},
		"qwen3 moe, no layer":     {"qwen3_moe", keys{"mlp_only_layers": []int{6}}, "holds 6, not between 0 and 5"},
		"qwen3 moe, no step":      {"qwen3_moe", keys{"decoder_sparse_step": 0}, "not between"},
		"sliding window":          {"qwen3", keys{"use_sliding_window": true, "sliding_window": 4096}, "use_sliding_window"},
		"sliding layers":          {"qwen3", keys{"layer_types": []string{"full_attention", "full_attention", "full_attention", "sliding_attention"}}, "sliding_attention"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, c.family, set(t, c.family, c.keys))
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestFilesBesideTheWeights(t *testing.T) {
	weights, err := os.ReadFile(testdata["lfm2"] + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"model.safetensors": {Data: weights}}
	if _, err := openFiles(t, files); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("without config.json: %v", err)
	}
	files["config.json"] = &fstest.MapFile{Data: set(t, "lfm2", nil)}
	files["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"eos_token_id": [2, 7]}`)}
	c, err := openFiles(t, files)
	if err != nil || len(c.Info.EOS) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	files["generation_config.json"] = &fstest.MapFile{Data: []byte(`{"eos_token_id": "2"}`)}
	if _, err := openFiles(t, files); err == nil || !strings.Contains(err.Error(), "generation_config.json: ") {
		t.Errorf("with a bad generation_config.json: %v", err)
	}
	files["config.json"] = &fstest.MapFile{Data: bytes.Repeat([]byte(" "), model.MaxConfigBytes+1)}
	if _, err := openFiles(t, files); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("with a huge config.json: %v", err)
	}
}

// FuzzConfig opens weights under hostile configs: an error or a plan, no panic, no long wait.
func FuzzConfig(f *testing.F) {
	small := fstest.MapFS{}
	read := func(name string) []byte {
		data, err := os.ReadFile(testdata["lfm2"] + "/" + name)
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	for family := range testdata {
		f.Add(set(f, family, nil), false)
	}
	f.Add([]byte(`{"model_type": "lfm2", "num_hidden_layers": 1024, "full_attn_idxs": [0]}`), false)
	f.Add(read("mlx/config.json"), true)
	weights := map[bool][]byte{false: read("model.safetensors"), true: read("mlx/model.safetensors")} // quantized
	f.Fuzz(func(t *testing.T, config []byte, quantized bool) {
		small["model.safetensors"] = &fstest.MapFile{Data: weights[quantized]}
		small["config.json"] = &fstest.MapFile{Data: config}
		small["generation_config.json"] = &fstest.MapFile{Data: config}
		c, err := openFiles(t, small)
		if err == nil && c.Plan.Bytes() <= 0 {
			t.Errorf("a plan of %d bytes", c.Plan.Bytes())
		}
	})
}

// TestBuiltinModel loads the embedded model through the code that loads any other.
func TestBuiltinModel(t *testing.T) {
	dir, err := builtin.Open("gopher-15m")
	if err != nil {
		t.Fatal(err)
	}
	on := modeltest.Suite{
		Open:   families.Open,
		Device: func() (backend.Device, error) { return cpu.Open(cpu.Options{}) },
	}.Load(t, dir)
	info := on.Model.Info()
	if info.Arch != "lfm2_moe" || info.Vocab != 8192 || info.BOS != 1 || len(info.EOS) != 1 || info.EOS[0] != 7 {
		t.Errorf("info %+v", info)
	}
	// "What does strings.Fields do?" in the chat format, and how transformers replies, greedily.
	prompt := []int32{1, 6, 3680, 206, 5603, 277, 1099, 903, 6331, 741, 38, 7, 206, 6, 840, 506, 450, 206}
	reply := []int32{3834, 296, 857, 619, 305, 411, 296, 5276}
	rows := modeltest.NewLanes(t, on, 1, 1, false).Forward(modeltest.Run{IDs: append(prompt, reply...)})
	for i, want := range reply {
		logits := rows.Logits[len(prompt)-1+i]
		if got := slices.Index(logits, slices.Max(logits)); int32(got) != want {
			t.Errorf("token %d of the reply is %d, want %d", i, got, want)
		}
	}
}
