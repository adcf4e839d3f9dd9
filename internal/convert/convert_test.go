package convert_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/convert"
	"tfbatch/internal/families"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
	"tfbatch/quant"
)

var four = quant.Format{Kind: quant.Affine, Bits: 4, Group: 32}

// sparse is a checkpoint with everything that a converter has to tell apart.
func sparse() modeltest.Spec {
	return modeltest.Spec{
		Type: "lfm2_moe", Vocab: 300, Hidden: 64, Layers: "caca", Q: 4, KV: 2, Dim: 16, FF: 160, Kernel: 3, DType: loader.BF16,
		Experts: modeltest.Experts{Count: 8, TopK: 3, Width: 48, Dense: 1, Biased: true, Scale: 1},
	}
}

// write makes a checkpoint with a few files beside it, and returns its folder.
func write(t *testing.T, s modeltest.Spec) string {
	t.Helper()
	dir := t.TempDir()
	if err := s.Write(dir, 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "LICENSE", ".secret", "training.bin", "weights.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func convertTo(t *testing.T, from string, f quant.Format) string {
	t.Helper()
	p, err := convert.Open(loader.Dir(from), f)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "new")
	var read int64
	if err := p.Write(t.Context(), to, func(n int64) { read += n }); err != nil {
		t.Fatal(err)
	}
	if read != p.Source().Bytes() {
		t.Errorf("heard of %d bytes of %d", read, p.Source().Bytes())
	}
	return to
}

// TestConvertedIsWhatMLXWouldMake compares every tensor with those of a checkpoint that was quantized when it
// was made, and has the names and stacks of mlx-lm.
func TestConvertedIsWhatMLXWouldMake(t *testing.T) {
	for name, change := range map[string]func(*modeltest.Spec){
		"experts apart": func(*modeltest.Spec) {},
		"stacked":       func(s *modeltest.Spec) { s.Experts.Stacked = true },
		"as MLX has it": func(s *modeltest.Spec) { s.MLX = true },
		"f32":           func(s *modeltest.Spec) { s.DType = loader.F32 },
		"all dense":     func(s *modeltest.Spec) { s.Experts.Dense = 4 },
		"qwen3":         func(s *modeltest.Spec) { s.Type, s.Layers, s.Experts.Biased = "qwen3_moe", "aaa", false },
		"qwen3 stacked": func(s *modeltest.Spec) {
			s.Type, s.Layers, s.Experts.Biased, s.Experts.Stacked = "qwen3_moe", "aaa", false, true
		},
		"lfm2, no experts": func(s *modeltest.Spec) { s.Type, s.Experts = "lfm2", modeltest.Experts{} },
		"many experts":     func(s *modeltest.Spec) { s.Experts.Count = 12 }, // 10 stands before 2
	} {
		t.Run(name, func(t *testing.T) {
			spec := sparse()
			change(&spec)
			from := write(t, spec)
			to := convertTo(t, from, four)
			spec.Affine, spec.MLX, spec.Experts.Stacked = modeltest.Affine{Bits: 4, Group: 32, Router: 64}, true, false
			got, want := read(t, to), read(t, write(t, spec))
			for name, values := range read(t, from) {
				if strings.HasSuffix(name, "conv.conv.weight") {
					want[name] = values // mlx-lm turns its axes when it loads them
				}
			}
			for name, values := range want {
				if len(got[name]) != len(values) {
					t.Errorf("%s has %d elements, want %d", name, len(got[name]), len(values))
					continue
				}
				for i, v := range values {
					if got[name][i] != v {
						t.Errorf("%s: element %d is %v, want %v", name, i, got[name][i], v)
						break
					}
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d tensors, want %d", len(got), len(want))
			}
			s, err := loader.Open(loader.Dir(to))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := families.Open(s); err != nil {
				t.Error(err)
			}
		})
	}
}

func read(t *testing.T, dir string) modeltest.Values {
	t.Helper()
	v, err := modeltest.ReadValues(loader.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestExpertsThatMakeNoStackAreRefused gives checkpoints to the converter that no family has looked at.
func TestExpertsThatMakeNoStackAreRefused(t *testing.T) {
	expert := func(number string, dtype loader.DType, shape ...int) loader.Tensor {
		return loader.Tensor{Name: "m.experts." + number + ".w1.weight", DType: dtype, Shape: shape}
	}
	for want, tensors := range map[string][]loader.Tensor{
		"none of expert 1":  {expert("0", loader.BF16, 2, 32), expert("2", loader.BF16, 2, 32)},
		"experts are alike": {expert("0", loader.BF16, 2, 32), expert("1", loader.BF16, 2, 64)},
		"is F32":            {expert("0", loader.BF16, 2, 32), expert("1", loader.F32, 2, 32)},
		"or another's":      {expert("0", loader.BF16, 2, 32), expert("00", loader.BF16, 2, 32)},
		"beyond any":        {expert("99999999999999999999", loader.BF16, 2, 32)},
		"no matrix":         {expert("0", loader.BF16, 2, 0)},
	} {
		dir := t.TempDir()
		err := loader.Create(dir, tensors, 1<<30, func(t loader.Tensor, w io.Writer) error {
			n := t.DType.Size()
			for _, d := range t.Shape {
				n *= int64(d)
			}
			_, err := w.Write(make([]byte, n))
			return err
		})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type": "lfm2_moe"}`), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := convert.Open(loader.Dir(dir), four); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSmallFilesComeAlong(t *testing.T) {
	to := convertTo(t, write(t, sparse()), four)
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "LICENSE config.json model.safetensors tokenizer.json"; got != want {
		t.Errorf("the folder has %s, want %s", got, want)
	}
}

func TestConfigKeepsWhatItHad(t *testing.T) {
	from := write(t, sparse())
	to := convertTo(t, from, four)
	old, now := config(t, from), config(t, to)
	for key, value := range old {
		if string(now[key]) == "" {
			t.Errorf("%s is gone: %s", key, value)
		}
	}
	if string(now["quantization"]) != string(now["quantization_config"]) || !strings.Contains(string(now["quantization"]), "feed_forward.gate") {
		t.Errorf("quantization is %s, its copy %s", now["quantization"], now["quantization_config"])
	}
}

func config(t *testing.T, dir string) (keys map[string]json.RawMessage) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestWhatCannotBeConvertedIsRefused(t *testing.T) {
	plain := write(t, sparse())
	quantized := sparse()
	quantized.Affine = modeltest.Affine{Bits: 4, Group: 32}
	narrow := sparse()
	narrow.Hidden, narrow.FF, narrow.Experts.Width = 48, 48, 48
	narrow.Q, narrow.Dim = 3, 16
	for want, c := range map[string]struct {
		from string
		f    quant.Format
	}{
		"quantized already":          {write(t, quantized), four},
		"7 bits":                     {plain, quant.Format{Kind: quant.Affine, Bits: 7, Group: 32}},
		"cannot convert to bf16":     {plain, quant.Format{}},
		"divides into groups of 128": {write(t, narrow), quant.Format{Kind: quant.Affine, Bits: 4, Group: 128}},
		"no model.safetensors":       {t.TempDir(), four},
	} {
		if _, err := convert.Open(loader.Dir(c.from), c.f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	p, err := convert.Open(loader.Dir(plain), four)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write(t.Context(), plain, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v, want one of a folder in use", err)
	}
}

// TestACutConversionOpensNowhere ends one early: without config.json no family takes the folder.
func TestACutConversionOpensNowhere(t *testing.T) {
	p, err := convert.Open(loader.Dir(write(t, sparse())), four)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	to := t.TempDir()
	if err := p.Write(ctx, to, func(int64) { cancel() }); err == nil {
		t.Fatal("a cut conversion says nothing")
	}
	if _, err := os.Stat(filepath.Join(to, "config.json")); err == nil {
		t.Error("config.json is there")
	}
}
