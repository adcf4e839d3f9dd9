package model

import (
	"strings"
	"testing"
)

func TestReadFieldsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"nothing":          {"", "not JSON"},
		"a list":           {"[1]", "not a JSON object"},
		"half an object":   {`{"a": 1`, "not JSON"},
		"text after":       {`{} {}`, "text after"},
		"a key twice":      {`{"a": 1, "b": {"c": 1, "c": 2}}`, `key "c" stands twice`},
		"python's NaN":     {`{"a": NaN}`, "not JSON"},
		"depth":            {strings.Repeat(`{"a":`, 17) + "1" + strings.Repeat("}", 17), "nested deeper"},
		"depth, unclosed":  {strings.Repeat("[", 1<<20), "nested deeper"},
		"size":             {`{"a": "` + strings.Repeat("x", MaxConfigBytes) + `"}`, "more than the limit"},
		"a number too far": {`{"a": 1e999, "b": {}`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFields("config.json", []byte(c.json))
			wantError(t, err, c.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
}

// parse reads one test object.
func parse(t *testing.T, json string) *Fields {
	t.Helper()
	f, err := ReadFields("config.json", []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFieldsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		read func(*Fields)
		want string
	}{
		"absent":             {`{}`, func(f *Fields) { f.Int(1, 9, "n") }, `no "n"`},
		"null is absent":     {`{"n": null}`, func(f *Fields) { f.Int(1, 9, "n") }, `no "n"`},
		"below":              {`{"n": -1}`, func(f *Fields) { f.Int(1, 9, "n") }, `"n" is -1, not between 1 and 9`},
		"above":              {`{"n": 10}`, func(f *Fields) { f.Int(1, 9, "n") }, "not between"},
		"huge":               {`{"n": 99999999999999999999}`, func(f *Fields) { f.Int(1, 9, "n") }, "not a whole number"},
		"fraction":           {`{"n": 2.5}`, func(f *Fields) { f.Int(1, 9, "n") }, "not a whole number"},
		"text for a number":  {`{"n": "3"}`, func(f *Fields) { f.Int(1, 9, "n") }, `"n" is "3", not a whole number`},
		"aliases at odds":    {`{"n": 2, "m": 3}`, func(f *Fields) { f.Int(1, 9, "n", "m") }, "must agree"},
		"float too far":      {`{"x": 1e999}`, func(f *Fields) { f.FloatOr(1, 0, 9, "x") }, "not a number"},
		"float beyond f32":   {`{"x": 1e200}`, func(f *Fields) { f.FloatOr(1, 0, 1e300, "x") }, "not between"},
		"one for true":       {`{"b": 1}`, func(f *Fields) { f.BoolOr(true, "b") }, "not true or false"},
		"number for a text":  {`{"s": 1}`, func(f *Fields) { f.StringOr("", "s") }, "not a text"},
		"text in a list":     {`{"l": [1, "a"]}`, func(f *Fields) { f.Ints("l") }, "not a list"},
		"null in a list":     {`{"l": [1, null]}`, func(f *Fields) { f.Ints("l") }, "not a list"},
		"a setting":          {`{"s": "gelu"}`, func(f *Fields) { f.Only("s", `"silu"`) }, `"s" is "gelu", which is not supported; only "silu" is`},
		"a long hostile one": {`{"s": "` + strings.Repeat("a", 500) + `"}`, func(f *Fields) { f.Only("s") }, "…"},
		"the first sticks":   {`{"n": 0, "m": 0}`, func(f *Fields) { f.Int(1, 9, "n"); f.Int(2, 9, "m") }, `"n" is 0`},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, c.json)
			c.read(f)
			wantError(t, f.Err(), "config.json: ")
			wantError(t, f.Err(), c.want)
			if len(f.Err().Error()) > 300 {
				t.Errorf("error of %d bytes", len(f.Err().Error()))
			}
		})
	}
}

func TestRopeTheta(t *testing.T) {
	for json, want := range map[string]float64{
		`{}`:                  7,
		`{"theta": 5e3}`:      5e3,
		`{"rope_theta": 1e6}`: 1e6,
		`{"rope_theta": 1000000.0, "theta": 1e6}`:                                          1e6,
		`{"rope_parameters": {"rope_theta": 1e7, "rope_type": "default"}}`:                 1e7,
		`{"rope_parameters": {"rope_theta": 10000000, "factor": null}, "rope_theta": 1e7}`: 1e7,
		`{"rope_scaling": null, "rope_parameters": null}`:                                  7,
		`{"rope_scaling": {"type": "default"}, "partial_rotary_factor": 1.0}`:              7,
	} {
		f := parse(t, json)
		if got := f.RopeTheta(7); got != want || f.Err() != nil {
			t.Errorf("%s: %v, %v, want %v", json, got, f.Err(), want)
		}
	}
	for json, want := range map[string]string{
		`{"rope_theta": 1e6, "rope_parameters": {"rope_theta": 2e6}}`:   "must agree",
		`{"rope_theta": 1e6, "theta": 2e6}`:                             "must agree",
		`{"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn"}}`: `rope_type "yarn"`,
		`{"rope_scaling": {"type": "linear", "factor": 2.0}}`:           `is stretched`,
		`{"rope_parameters": {"rope_theta": 1e6, "factor": 2.0}}`:       `has "factor"`,
		`{"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}`:  `has "full_attention"`,
		`{"rope_parameters": 1e6}`:                                      "not an object",
		`{"partial_rotary_factor": 0.5}`:                                "partial_rotary_factor",
		`{"rope_theta": 1e100}`:                                         "not between",
		`{"rope_theta": -1}`:                                            "not between",
		`{"rope_theta": 0}`:                                             "not between",
		`{"rope_theta": "NaN"}`:                                         "not a number",
	} {
		f := parse(t, json)
		f.RopeTheta(7)
		wantError(t, f.Err(), want)
	}
}

func TestRope(t *testing.T) {
	const three = `"factor": 8, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192`
	llama3 := Rope{Theta: 5e5, Kind: RopeLlama3, Factor: 8, Low: 1, High: 4, Original: 8192}
	for json, want := range map[string]Rope{
		`{}`: {Theta: 7, Factor: 1},
		`{"rope_scaling": {"type": "linear", "factor": 2.0}}`:                                                                 {Theta: 7, Kind: RopeLinear, Factor: 2},
		`{"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", ` + three + `}}`:                                         llama3,
		`{"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "type": "llama3", ` + three + `}}`:                       llama3,
		`{"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", ` + three + `}}`:                                 llama3,
		`{"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}, "rope_scaling": {"type": "llama3", ` + three + `}}`: llama3,
		`{"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", ` + three + `},
		  "rope_theta": 5e5, "rope_scaling": {"rope_theta": 5e5, "type": "llama3", ` + three + `}}`: llama3,
	} {
		f := parse(t, json)
		if got := f.Rope(7); got != want || f.Err() != nil {
			t.Errorf("%s: %+v, %v, want %+v", json, got, f.Err(), want)
		}
	}
	for json, want := range map[string]string{
		`{"rope_scaling": {"type": "dynamic", "factor": 2.0}}`:                                                                                  `type "dynamic"`,
		`{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}`:                                                                                `rope_type "yarn"`,
		`{"rope_scaling": {"rope_type": 3}}`:                                                                                                    `rope_type 3`,
		`{"rope_scaling": {"type": "linear"}}`:                                                                                                  `has no "factor"`,
		`{"rope_scaling": {"type": "linear", "factor": 0.5}}`:                                                                                   "not between 1",
		`{"rope_scaling": {"type": "linear", "factor": "2"}}`:                                                                                   "not a number",
		`{"rope_scaling": {"type": "linear", "rope_type": "default", "factor": 2}}`:                                                             "must agree",
		`{"rope_scaling": {"type": "linear", "factor": 2, "low_freq_factor": 1}}`:                                                               `has "low_freq_factor"`,
		`{"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}}`:                                        `no "original_max_position_embeddings"`,
		`{"rope_scaling": {"type": "llama3", ` + three + `, "attention_factor": 1.2}}`:                                                          `has "attention_factor"`,
		`{"rope_scaling": {"type": "llama3", ` + three + `}, "rope_parameters": {"type": "linear", "factor": 8}}`:                               "do not agree",
		`{"rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4, "original_max_position_embeddings": 1}}`: "not below",
		`{"rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 1e4}, "rope_theta": 1e5}`:                                               "must agree",
	} {
		f := parse(t, json)
		f.Rope(7)
		wantError(t, f.Err(), want)
	}
}

func TestHeadShape(t *testing.T) {
	for json, want := range map[string]HeadShape{
		`{"num_attention_heads": 4}`:                                           {4, 4, 16},
		`{"num_heads": 4, "num_key_value_heads": 2}`:                           {4, 2, 16},
		`{"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32}`: {4, 1, 32},
		`{"num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 6}`:  {5, 5, 6},
	} {
		f := parse(t, json)
		if got := f.HeadShape(64, "num_heads"); got != want || f.Err() != nil {
			t.Errorf("%s: %v, %v, want %v", json, got, f.Err(), want)
		}
	}
	for json, want := range map[string]string{
		`{}`:                         "num_attention_heads",
		`{"num_attention_heads": 5}`: "do not divide",
		`{"num_attention_heads": 4, "num_key_value_heads": 3}`:  "do not divide",
		`{"num_attention_heads": 0}`:                            "not between",
		`{"num_attention_heads": 4, "head_dim": 7}`:             "even",
		`{"num_attention_heads": 4, "head_dim": 1000000000000}`: "not between",
		`{"num_attention_heads": 64}`:                           "have 1 elements",
		`{"num_attention_heads": 4, "num_heads": 8}`:            "must agree",
	} {
		f := parse(t, json)
		f.HeadShape(64, "num_heads")
		wantError(t, f.Err(), want)
	}
}

func TestLayerTypes(t *testing.T) {
	kinds := []string{ShortConv, FullAttention}
	for _, json := range []string{
		`{"layer_types": ["conv", "full_attention", "conv"]}`,
		`{"full_attn_idxs": [1]}`,
		`{"layer_types": null, "full_attn_idxs": [1]}`,
		`{"layer_types": ["conv", "full_attention", "conv"], "full_attn_idxs": [1]}`,
	} {
		f := parse(t, json)
		if got := strings.Join(f.LayerTypes(3, kinds...), " "); got != "conv full_attention conv" || f.Err() != nil {
			t.Errorf("%s: %s, %v", json, got, f.Err())
		}
	}
	for json, want := range map[string]string{
		`{}`:                  `no "layer_types"`,
		`{"layer_types": []}`: "0 entries for 3 layers",
		`{"layer_types": ["conv", "conv", "sliding_attention"]}`:           `"sliding_attention"`,
		`{"full_attn_idxs": [3]}`:                                          "holds 3",
		`{"full_attn_idxs": [-1]}`:                                         "holds -1",
		`{"layer_types": ["conv", "conv", "conv"], "full_attn_idxs": [1]}`: "do not agree",
	} {
		f := parse(t, json)
		f.LayerTypes(3, kinds...)
		wantError(t, f.Err(), want)
	}
}

func TestEndsOfSequenceAreJoined(t *testing.T) {
	const rest = `"model_type": "x", "vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 1, "max_position_embeddings": 9`
	read := func(config, generation string) (Info, error) {
		f := parse(t, `{`+rest+`, `+config+`}`)
		n := f.Info(parse(t, generation))
		return n, f.Err()
	}
	n, err := read(`"bos_token_id": 1, "eos_token_id": [7, 2]`, `{"eos_token_id": 2}`)
	if err != nil || n.BOS != 1 || len(n.EOS) != 2 || n.EOS[0] != 2 || n.EOS[1] != 7 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := read(`"eos_token_id": null`, `{}`); err != nil || n.BOS != -1 || n.EOS != nil {
		t.Errorf("%+v, %v", n, err)
	}
	for config, generation := range map[string]string{
		`"eos_token_id": 10`:         `{}`,
		`"eos_token_id": [1, -1]`:    `{}`,
		`"eos_token_id": ["a"]`:      `{}`,
		`"eos_token_id": 3000000000`: `{}`,
		`"bos_token_id": 10`:         `{}`,
		`"eos_token_id": 1`:          `{"eos_token_id": 10}`,
		`"eos_token_id": 2`:          `{"eos_token_id": {}}`,
	} {
		if _, err := read(config, generation); err == nil {
			t.Errorf("%s and %s pass", config, generation)
		}
	}
}

func TestUnknownArithmeticIsRefused(t *testing.T) {
	for _, json := range []string{
		`{"sliding_window": 4096}`, `{"use_sliding_window": true}`, `{"final_logit_softcapping": 30.0}`,
		`{"attn_logit_softcapping": 50.0}`, `{"hidden_act": "gelu"}`, `{"embedding_multiplier": 12.0}`,
		`{"no_rope_layers": [1]}`,
	} {
		f := parse(t, json)
		f.RefuseUnknownArithmetic()
		if f.Err() == nil {
			t.Errorf("%s passes", json)
		}
	}
	f := parse(t, `{"hidden_act": "silu", "use_sliding_window": false, "sliding_window": 4096, "logit_scale": 1.0, "made_up": 3}`)
	if f.RefuseUnknownArithmetic(); f.Err() != nil {
		t.Error(f.Err())
	}
}
