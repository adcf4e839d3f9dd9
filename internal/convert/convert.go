// Package convert makes a quantized checkpoint of a dense one, in the layout of mlx-lm: affine codes with
// their scales and biases beside them, and what they are in config.json.
//
// Start with [Open], which decides everything from the headers, then [Plan.Write], which reads one matrix at
// a time. The package knows no families: a tensor is a matrix when its name and shape say so. Names stay as they are
// but for those of experts, which mlx-lm stacks; see names.go.
package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tfbatch/loader"
	"tfbatch/quant"
)

const (
	configName = "config.json"
	maxConfig  = 4 << 20 // as package model reads it
)

// Plan is every decision of a conversion.
type Plan struct {
	Tensors []Tensor // in the order in which they are written

	source *loader.Snapshot
	config map[string]json.RawMessage
	format quant.Format
}

// Tensor is one of the new checkpoint before it is encoded. A dense format leaves it as it is.
type Tensor struct {
	loader.Tensor
	Format quant.Format

	from []slab // whose bytes, one after the other, it has
}

// Open plans the conversion of the checkpoint in the folder from to format. One that is quantized already is
// refused: its codes would be rounded a second time.
func Open(from fs.FS, format quant.Format) (*Plan, error) {
	if err := format.Check(); err != nil {
		return nil, err
	}
	if format.Kind != quant.Affine {
		return nil, fmt.Errorf("cannot convert to %v, which is not quantized", format)
	}
	source, err := loader.Open(from)
	if err != nil {
		return nil, err
	}
	p := &Plan{source: source, format: format}
	if err := p.readConfig(); err != nil {
		return nil, err
	}
	var modelType string
	_ = json.Unmarshal(p.config["model_type"], &modelType) // families say what is wrong with it
	if err := p.arrange(modelType); err != nil {
		return nil, err
	}
	for i, t := range p.Tensors {
		if kind, ok := kinds[t.DType]; ok {
			p.Tensors[i].Format = p.formatOf(t.Tensor, kind)
		} else if isMatrix(t.Tensor) {
			return nil, fmt.Errorf("tensor %q is %s; give a checkpoint in BF16, F16 or F32", t.Name, t.DType)
		}
	}
	if !slices.ContainsFunc(p.Tensors, func(t Tensor) bool { return t.Format.Kind == quant.Affine }) {
		return nil, fmt.Errorf("no matrix of the checkpoint divides into groups of %d", format.Group)
	}
	return p, nil
}

// kinds are the types that can be encoded.
var kinds = map[loader.DType]quant.Kind{loader.BF16: quant.BF16, loader.F16: quant.F16, loader.F32: quant.F32}

func (p *Plan) readConfig() error {
	data, err := p.source.ReadFile(configName, maxConfig)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &p.config); err != nil {
		return fmt.Errorf("%s: %w", configName, err)
	}
	if p.config == nil {
		return fmt.Errorf("%s: not a JSON object", configName)
	}
	for _, key := range []string{"quantization", "quantization_config"} {
		if value, ok := p.config[key]; ok && string(value) != "null" {
			return fmt.Errorf("%s: has %q: the checkpoint is quantized already; give the one that it was made from", configName, key)
		}
	}
	return nil
}

// routerFormat is what mlx-lm gives the matrix that chooses experts, whose errors would send rows astray.
var routerFormat = quant.Format{Kind: quant.Affine, Bits: 8, Group: 64}

// formatOf is what becomes of a tensor: matrices that divide into groups are encoded, routers as mlx-lm does it.
func (p *Plan) formatOf(t loader.Tensor, kind quant.Kind) quant.Format {
	f := p.format
	if path.Ext(module(t.Name)) == ".gate" && routerFormat.Bits > f.Bits {
		f = routerFormat
	}
	if !isMatrix(t) || !f.Fits(t.Shape[len(t.Shape)-1]) {
		return quant.Format{Kind: kind}
	}
	return f
}

// isMatrix goes by name and shape: a projection, an embedding, or a stack of experts. The kernel of a
// convolution has three dimensions too, but its inputs never divide into groups.
func isMatrix(t loader.Tensor) bool {
	return strings.HasSuffix(t.Name, ".weight") && (len(t.Shape) == 2 || len(t.Shape) == 3) && t.Shape[len(t.Shape)-1] > 0
}

// module is the path that config.json and the scales of a matrix go by.
func module(tensor string) string { return strings.TrimSuffix(tensor, ".weight") }

// parts are the tensors that t becomes, in the order in which they are written.
func (t Tensor) parts() []loader.Tensor {
	if t.Format.Kind != quant.Affine {
		return []loader.Tensor{t.Tensor}
	}
	last := len(t.Shape) - 1
	with := func(cols int) []int { return append(slices.Clone(t.Shape[:last]), cols) }
	groups := with(t.Shape[last] / t.Format.Group)
	return []loader.Tensor{
		{Name: t.Name, DType: loader.U32, Shape: with(t.Format.RowBytes(t.Shape[last]) / 4)},
		{Name: module(t.Name) + ".scales", DType: t.DType, Shape: groups},
		{Name: module(t.Name) + ".biases", DType: t.DType, Shape: groups},
	}
}

// Bytes is the size of the checkpoint's tensors now, and of what they become.
func (p *Plan) Bytes() (before, after int64) {
	for _, t := range p.Tensors {
		before += t.Size
		for _, part := range t.parts() {
			size := part.DType.Size()
			for _, d := range part.Shape {
				size *= int64(d)
			}
			after += size
		}
	}
	return before, after
}

// Source is the checkpoint that is read.
func (p *Plan) Source() *loader.Snapshot { return p.source }

// quantization is the entry of config.json: the format, and the modules that have another.
func (p *Plan) quantization() map[string]any {
	entry := func(f quant.Format) map[string]any {
		return map[string]any{"bits": f.Bits, "group_size": f.Group, "mode": "affine"}
	}
	q := entry(p.format)
	for _, t := range p.Tensors {
		if t.Format.Kind == quant.Affine && t.Format != p.format {
			q[module(t.Name)] = entry(t.Format)
		}
	}
	return q
}

// newConfig is config.json with the quantization in it, twice, as mlx-lm writes it.
func (p *Plan) newConfig() ([]byte, error) {
	q, err := json.Marshal(p.quantization())
	if err != nil {
		return nil, err
	}
	p.config["quantization"], p.config["quantization_config"] = q, q
	data, err := json.MarshalIndent(p.config, "", "  ")
	return append(data, '\n'), err
}

var errNotEmpty = errors.New("is not empty; give a new folder")
