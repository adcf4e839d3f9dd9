package model

import (
	"encoding/binary"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/loader"
	"tfbatch/quant"
)

func TestQuantizationIsRead(t *testing.T) {
	f := parse(t, `{"quantization": {"bits": 4, "group_size": 64, "mode": "affine", "a.gate": {"bits": 8, "group_size": 32}, "a.b": false, "a.c": true}}`)
	q := f.Quantization()
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	four, eight := quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}, quant.Format{Kind: quant.Affine, Bits: 8, Group: 32}
	for _, c := range []struct {
		module string
		scales bool
		want   quant.Format
		fault  string
	}{
		{"x", true, four, ""},
		{"x", false, quant.Format{}, ""},
		{"a.gate", true, eight, ""},
		{"language_model.a.gate", true, eight, ""},
		{"a.gate", false, eight, "has no scales"},
		{"a.c", true, four, ""},
		{"a.c", false, four, "has no scales"},
		{"a.b", false, quant.Format{}, ""},
		{"a.b", true, quant.Format{}, "does not quantize it"},
	} {
		got, err := q.of(c.module, c.scales)
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s, scales %t: %v, error %v, want %v, %q", c.module, c.scales, got, err, c.want, c.fault)
		}
	}
	if _, err := (Quantization{}).of("x", true); err == nil {
		t.Error("scales pass without a quantization")
	}
}

func TestQuantizationsOfOtherKindsAreRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"quantization_config": {"quant_method": "gptq", "bits": 4}}`:                                                          `"gptq"`,
		`{"quantization_config": {"quant_method": "awq"}}`:                                                                      `"awq"`,
		`{"quantization_config": {"quant_method": "bitsandbytes"}}`:                                                             "tfbatch quantize",
		`{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`:                                     `"fp8"`,
		`{"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}}`:                                                      "micro-scaling",
		`{"quantization": {"bits": 7, "group_size": 32}}`:                                                                       "7 bits",
		`{"quantization": {"bits": 4, "group_size": 48}}`:                                                                       "groups of 48",
		`{"quantization": {"bits": 4}}`:                                                                                         `no "group_size"`,
		`{"quantization": {"bits": 4, "group_size": 64, "x.y": {"bits": 8}}}`:                                                   `"quantization.x.y": no "group_size"`,
		`{"quantization": {"bits": 4, "group_size": 64, "x": 3}}`:                                                               "neither a setting",
		`{"quantization": [4, 64]}`:                                                                                             "not an object",
		`{"quantization": {"bits": 4, "group_size": 64}, "quantization_config": {"bits": 8, "group_size": 64}}`:                 "do not agree",
		`{"quantization": {"bits": 4, "group_size": 64}, "quantization_config": {"bits": 4, "group_size": 64, "x": false}}`:     "do not agree",
		`{"quantization": {"bits": 4, "group_size": 64}, "quantization_config": {"quant_method": "gptq"}, "hidden_size": 4096}`: `"gptq"`,
	} {
		f := parse(t, config)
		f.Quantization()
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", config, err, want)
		}
	}
	for _, config := range []string{
		`{}`, `{"quantization": null}`,
		`{"quantization": {"bits": 4, "group_size": 64}, "quantization_config": {"mode": "affine", "group_size": 64, "bits": 4}}`,
	} {
		f := parse(t, config)
		if f.Quantization(); f.Err() != nil {
			t.Errorf("%s: %v", config, f.Err())
		}
	}
}

// quantized is the global setting of these tests.
func quantized(bits, group int) Quantization {
	return Quantization{format: quant.Format{Kind: quant.Affine, Bits: bits, Group: group}}
}

// codes are the three tensors of a quantized module.
func codes(module string, dtype loader.DType, bits, group, rows, cols int) []loader.Tensor {
	return []loader.Tensor{
		{Name: module + ".biases", DType: dtype, Shape: []int{rows, cols / group}},
		{Name: module + ".weight", DType: loader.U32, Shape: []int{rows, cols * bits / 32}},
		{Name: module + ".scales", DType: dtype, Shape: []int{rows, cols / group}},
	}
}

func TestQuantizedMatricesThatDoNotFitAreRefused(t *testing.T) {
	good := codes("w", loader.BF16, 4, 32, 3, 64)
	for want, change := range map[string]func(tensors []loader.Tensor, q *Quantization) []loader.Tensor{
		`"w.weight" is [3 8], the config makes it [3 16] in affine8/32`: func(l []loader.Tensor, q *Quantization) []loader.Tensor {
			*q = quantized(8, 32)
			return l
		},
		`"w.scales" is [3 2], the config makes it [3 1] in affine4/64`: func(l []loader.Tensor, q *Quantization) []loader.Tensor {
			*q = quantized(4, 64)
			return l
		},
		"64 inputs do not divide into groups of 128": func(l []loader.Tensor, q *Quantization) []loader.Tensor {
			*q = quantized(4, 128)
			return l
		},
		`"w" has scales, but config.json does not quantize it`: func(l []loader.Tensor, q *Quantization) []loader.Tensor {
			*q = Quantization{}
			return l
		},
		"1 tensors missing: w.biases": func(l []loader.Tensor, _ *Quantization) []loader.Tensor { return l[1:] },
		`"w.biases" is [4 2]`: func(l []loader.Tensor, _ *Quantization) []loader.Tensor {
			l[0].Shape = []int{4, 2}
			return l
		},
		"scales in BF16 and biases in F16": func(l []loader.Tensor, _ *Quantization) []loader.Tensor {
			l[0].DType = loader.F16
			return l
		},
		"is I32 with scales": func(l []loader.Tensor, _ *Quantization) []loader.Tensor {
			l[1].DType = loader.I32
			return l
		},
		"is U32; only BF16": func(l []loader.Tensor, _ *Quantization) []loader.Tensor { return l[1:2] },
		"GPTQ or AWQ": func(l []loader.Tensor, _ *Quantization) []loader.Tensor {
			return append(l, loader.Tensor{Name: "w.qweight", DType: loader.I32, Shape: []int{8, 3}})
		},
	} {
		q := quantized(4, 32)
		list := make([]loader.Tensor, len(good))
		copy(list, good)
		list = change(list, &q)
		p := NewPlanner(checkpoint(t, nil, list...))
		p.Quantized(q)
		var w backend.Weight
		p.Weight(&w, 64, Part{"w.weight", 3})
		if _, err := p.Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestJoinedCodesHaveTheMostBits(t *testing.T) {
	tensors := append(codes("q", loader.BF16, 4, 32, 3, 64), codes("v", loader.BF16, 6, 32, 2, 64)...)
	six := quant.Format{Kind: quant.Affine, Bits: 6, Group: 32}
	q := quantized(4, 32)
	q.modules = map[string]quant.Format{"v": six}
	var w backend.Weight
	dev := &record{Device: openCPU(t)}
	if err := loadPlan(t, dev, checkpoint(t, nil, tensors...), func(p *Planner) {
		p.Quantized(q)
		p.Weight(&w, 64, Part{"q.weight", 3}, Part{"v.weight", 2})
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.Shape().Format; got != six {
		t.Errorf("joined in %v, want %v", got, six)
	}
	for _, m := range dev.matrices {
		if m.Format != six || len(m.Scales) != m.Rows*4 || len(m.Biases) != m.Rows*4 {
			t.Errorf("filled from %v with %d bytes of scales for %d rows", m.Format, len(m.Scales), m.Rows)
		}
	}
	odd := append(codes("q", loader.BF16, 4, 32, 3, 64), codes("v", loader.F16, 4, 32, 2, 64)...)
	p := NewPlanner(checkpoint(t, nil, odd...))
	p.Quantized(quantized(4, 32))
	p.Weight(&w, 64, Part{"q.weight", 3}, Part{"v.weight", 2})
	if _, err := p.Plan(); err == nil || !strings.Contains(err.Error(), "must be alike") {
		t.Errorf("error %v, want one of scales that differ", err)
	}
}

func TestScalesMustBeFinite(t *testing.T) {
	for _, bad := range []string{"w.scales", "w.biases"} {
		s := checkpoint(t, func(t loader.Tensor, data []byte) {
			if t.Name == bad {
				binary.LittleEndian.PutUint16(data[2:], 0x7f80)
			}
		}, codes("w", loader.BF16, 4, 32, 1, 64)...)
		var w backend.Weight
		err := loadPlan(t, openCPU(t), s, func(p *Planner) {
			p.Quantized(quantized(4, 32))
			p.Weight(&w, 64, Part{"w.weight", 1})
		})
		if err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("error %v, want one that names %s", err, bad)
		}
	}
}

// TestAModelThatSeesIsFound has the prefix of mlx-vlm before every name, and an entry without it.
func TestAModelThatSeesIsFound(t *testing.T) {
	const prefix = "language_model."
	tensors := append(codes(prefix+"model.q", loader.BF16, 8, 32, 2, 64), bf16(prefix+"norm", 4), bf16(prefix+"lm_head.weight", 1, 4))
	q := quantized(4, 32)
	q.modules = map[string]quant.Format{"model.q": {Kind: quant.Affine, Bits: 8, Group: 32}}
	var w backend.Weight
	var gain backend.Buffer
	s := checkpoint(t, nil, tensors...)
	if err := loadPlan(t, openCPU(t), s, func(p *Planner) {
		p.Quantized(q)
		p.Weight(&w, 64, Part{"model.q.weight", 2})
		p.Vector(&gain, Part{"norm", 4})
		p.Ignore(HeadTensor)
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.Shape().Format.Bits; got != 8 {
		t.Errorf("%d bits, want 8", got)
	}
	if (Source{Config: parse(t, "{}"), Tensors: s}).Tied() {
		t.Error("its head was not seen")
	}
}
