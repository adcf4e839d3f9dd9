package inspect_test

import (
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/builtin"
	"tfbatch/internal/inspect"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

func spec() modeltest.Spec {
	return modeltest.Spec{
		Type: "lfm2", Vocab: 300, Hidden: 96, Layers: "cacca", Q: 6, KV: 2, Dim: 16, FF: 160, Kernel: 3, DType: loader.BF16,
		Affine: modeltest.Affine{Bits: 4, Group: 32},
	}
}

func TestAModelIsDescribed(t *testing.T) {
	r, err := inspect.Open(modeltest.Make(t, spec(), 1))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model
	if m == nil || r.Refused != "" {
		t.Fatalf("refused: %s", r.Refused)
	}
	if m.Arch != "lfm2" || m.Layers != 5 || m.Hidden != 96 || m.Vocab != 300 || len(r.Config) != 64 {
		t.Errorf("%+v", m)
	}
	// Two layers of K and V, two heads of 16 in bf16; three layers whose ring has a window of 1 and a kernel of 3, in f32.
	if m.Token != 2*2*2*16*2 || m.Lane != 3*4*96*4 {
		t.Errorf("%d bytes a token and %d a lane", m.Token, m.Lane)
	}
	kinds := func(list []inspect.Group) (names []string) {
		for _, g := range list {
			names = append(names, g.Kind)
		}
		return names
	}
	if got := kinds(m.Weights); !slices.Equal(got, []string{"affine4/32", "vectors"}) {
		t.Errorf("weights of %q", got)
	}
	if got := kinds(r.Tensors); !slices.Equal(got, []string{"BF16", "U32"}) {
		t.Errorf("tensors of %q", got)
	}
	var sum int64
	for _, g := range m.Weights {
		sum += g.Bytes
	}
	if sum != m.Resides {
		t.Errorf("weights of %d bytes in groups of %d", m.Resides, sum)
	}
}

func TestDigestsAreThoseOfALoad(t *testing.T) {
	r, err := inspect.Open(modeltest.Make(t, spec(), 1))
	if err != nil {
		t.Fatal(err)
	}
	if r.Shards[0].SHA256 != "" {
		t.Error("a digest of bytes that nobody read")
	}
	var read int64
	if err := r.Digest(t.Context(), func(n int64) { read += n }); err != nil {
		t.Fatal(err)
	}
	for _, sh := range r.Shards {
		if sum, err := hex.DecodeString(sh.SHA256); err != nil || len(sum) != 32 {
			t.Errorf("%s has digest %q", sh.Name, sh.SHA256)
		}
	}
	if read != r.Bytes {
		t.Errorf("heard of %d bytes of %d", read, r.Bytes)
	}
}

func TestWhyACheckpointIsRefused(t *testing.T) {
	if _, err := inspect.Open(loader.Dir(t.TempDir())); err == nil || !strings.Contains(err.Error(), "no model.safetensors") {
		t.Errorf("error %v of an empty folder", err)
	}
	dir := t.TempDir()
	if err := spec().Write(dir, 1); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(config map[string]any){
		"is not supported":     func(c map[string]any) { c["architectures"], c["model_type"] = []string{"MambaForCausalLM"}, "mamba" },
		`"gptq"`:               func(c map[string]any) { c["quantization_config"] = map[string]any{"quant_method": "gptq"} },
		"does not quantize it": func(c map[string]any) { delete(c, "quantization"); delete(c, "quantization_config") },
	} {
		config := spec().Config()
		change(config)
		data, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := inspect.Open(loader.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		if r.Model != nil || !strings.Contains(r.Refused, want) || len(r.Tensors) == 0 {
			t.Errorf("refused for %q, want %q, with tensors %v", r.Refused, want, r.Tensors)
		}
	}
}

// TestTextIsDescribed changes one file at a time of a folder that runs.
func TestTextIsDescribed(t *testing.T) {
	const tokens = `{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<end>": 2}, "merges": []}}`
	dir := t.TempDir()
	if err := spec().Write(dir, 1); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *inspect.Report {
		r, err := inspect.Open(loader.Dir(dir))
		if err != nil || r.Model == nil || r.Text == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	if r := open(); r.Runs() || !strings.Contains(r.Text.Refused, "no tokenizer.json; other tokenizer files are not read") {
		t.Errorf("without a tokenizer: %q", r.Text.Refused)
	}
	write("tokenizer.json", tokens)
	write("tokenizer_config.json", `{"eos_token": "<end>", "chat_template": [{"name": "default", "template": "x"}, {"name": "tool_use", "template": "y"}]}`)
	write("generation_config.json", `{"top_p": 0.5}`)
	r := open()
	if !r.Runs() || r.Text.Tokens != 3 || len(r.Text.Tokenizer) != 64 || r.Text.From != "tokenizer_config.json" || !r.Text.Tools || len(r.Text.Suggested) != 1 {
		t.Errorf("%+v", r.Text)
	}
	if got := r.Text.Ends; len(got) != 1 || got[0].String() != `"" (7)` { // as the config says, which the tokenizer does not have
		t.Errorf("ends at %v", got)
	}
	write("chat_template.jinja", "{% if %}")
	if r := open(); r.Runs() || !strings.Contains(r.Text.Refused, "template chat_template.jinja:1") {
		t.Errorf("with a broken template: %q", r.Text.Refused)
	}
	write("tokenizer.json", strings.Replace(tokens, "BPE", "Unigram", 1))
	if r := open(); r.Runs() || !strings.Contains(r.Text.Refused, `tokenizer.json: model.type: "Unigram" is not supported`) {
		t.Errorf("with another tokenizer: %q", r.Text.Refused)
	}
}

func TestADrafterIsHeldToItsModel(t *testing.T) {
	target, drafter := builtinFS(t, "gopher-15m"), builtinFS(t, "gopher-15m-dspark")
	r, err := inspect.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.With(drafter); err != nil || r.Drafter == nil || r.Drafter.Refused != "" || r.Drafter.Block == 0 || len(r.Drafter.Taps) == 0 {
		t.Errorf("%+v, error %v", r.Drafter, err)
	}
	other, err := inspect.Open(modeltest.Make(t, spec(), 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.With(drafter); err != nil || !strings.Contains(other.Drafter.Refused, "made for another model") {
		t.Errorf("%+v, error %v", other.Drafter, err)
	}
}

func builtinFS(t *testing.T, name string) fs.FS {
	t.Helper()
	fsys, err := builtin.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}
