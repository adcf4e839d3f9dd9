package modeltest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"tfbatch/loader"
	"tfbatch/quant"
)

// Affine is how the matrices of a checkpoint are quantized: as mlx-lm does it, in Bits and groups of Group
// wherever the inputs divide, and routers in 8 bits. Zero bits leave all dense.
type Affine struct {
	Bits, Group int
	Router      int  // the group of routers, 0 for the same
	Mixed       bool // the embedding, v_proj and w2 in more bits, and q_proj of layer 1 in 8
}

// format is that of a module, dense where it is not quantized.
func (s Spec) format(t loader.Tensor) quant.Format {
	a, cols := s.Affine, t.Shape[len(t.Shape)-1]
	matrix := len(t.Shape) > 1 && !strings.Contains(t.Name, "conv.conv") && !strings.Contains(t.Name, "norm")
	if a.Bits == 0 || !matrix {
		return quant.Format{}
	}
	bits, group := a.Bits, a.Group
	switch name := module(t.Name); {
	case strings.HasSuffix(name, ".gate"):
		bits, group = 8, cmp.Or(a.Router, a.Group)
	case !a.Mixed:
	case strings.HasSuffix(name, "embed_tokens"), strings.HasSuffix(name, "layers.1.self_attn.q_proj"):
		bits = 8
	case strings.HasSuffix(name, "v_proj"), strings.HasSuffix(name, "w2"), strings.HasSuffix(name, "down_proj"):
		bits = 6
	}
	if cols%group != 0 {
		return quant.Format{}
	}
	return quant.Format{Kind: quant.Affine, Bits: bits, Group: group}
}

func module(tensor string) string { return strings.TrimSuffix(tensor, ".weight") }

// coded replaces every quantized tensor by its codes, scales and biases.
func (s Spec) coded(dense []loader.Tensor) (out []loader.Tensor) {
	for _, t := range dense {
		f := s.format(t)
		if f.Kind != quant.Affine {
			out = append(out, t)
			continue
		}
		last := len(t.Shape) - 1
		with := func(cols int) []int { return append(slices.Clone(t.Shape[:last]), cols) }
		groups := with(t.Shape[last] / f.Group)
		out = append(out, // scales first: a reader may not count on the order
			loader.Tensor{Name: module(t.Name) + ".scales", DType: t.DType, Shape: groups},
			loader.Tensor{Name: t.Name, DType: loader.U32, Shape: with(t.Shape[last] * f.Bits / 32)},
			loader.Tensor{Name: module(t.Name) + ".biases", DType: t.DType, Shape: groups},
		)
	}
	return out
}

// quantization is the entry of config.json.
func (s Spec) quantization() map[string]any {
	q := map[string]any{"bits": s.Affine.Bits, "group_size": s.Affine.Group, "mode": "affine"}
	for _, t := range s.dense() {
		f := s.format(t)
		switch {
		case f.Kind == quant.Affine && (f.Bits != s.Affine.Bits || f.Group != s.Affine.Group):
			q[module(t.Name)] = map[string]any{"bits": f.Bits, "group_size": f.Group}
		case f.Kind != quant.Affine && strings.HasSuffix(t.Name, "w2.weight"):
			q[module(t.Name)] = false // as good as leaving it out
		}
	}
	return q
}

// encoded is the quantized matrix of a dense tensor.
func (s Spec) encoded(t loader.Tensor, seed uint64) (quant.Matrix, error) {
	var data bytes.Buffer
	if err := s.fillDense(t, &data, seed); err != nil {
		return quant.Matrix{}, err
	}
	m := matrixOf(t)
	m.Format, m.Data = quant.Format{Kind: kinds[t.DType]}, data.Bytes()
	return quant.Encode(m, s.format(t))
}

var kinds = map[loader.DType]quant.Kind{loader.BF16: quant.BF16, loader.F16: quant.F16, loader.F32: quant.F32}

// matrixOf has the shape of a tensor, whose stacked matrices become one.
func matrixOf(t loader.Tensor) quant.Matrix {
	last := len(t.Shape) - 1
	m := quant.Matrix{Rows: 1, Cols: t.Shape[last]}
	for _, d := range t.Shape[:last] {
		m.Rows *= d
	}
	return m
}

// fill writes a tensor of the checkpoint: a dense one, or a part of one that is quantized.
func (s Spec) fill(t loader.Tensor, w io.Writer, seed uint64) error {
	name, part := t.Name, "codes"
	for _, suffix := range []string{".scales", ".biases"} {
		if m, ok := strings.CutSuffix(name, suffix); ok {
			name, part = m, suffix
		}
	}
	dense := s.dense()
	i := slices.IndexFunc(dense, func(d loader.Tensor) bool { return module(d.Name) == module(name) })
	if s.format(dense[i]).Kind != quant.Affine {
		return s.fillDense(t, w, seed)
	}
	m, err := s.encoded(dense[i], seed)
	if err != nil {
		return err
	}
	_, err = w.Write(map[string][]byte{"codes": m.Data, ".scales": m.Scales, ".biases": m.Biases}[part])
	return err
}

// Values are the weights of a checkpoint of s that was read by ReadValues, under the names of the plain
// dense one: quantized matrices as what their codes stand for, stacks apart.
func (s Spec) Values(read Values) Values {
	out := Values{}
	for _, t := range s.dense() {
		values := read[t.Name]
		if f := s.format(t); f.Kind == quant.Affine {
			values = decodeMatrix(t, f, read)
		}
		for i, part := range s.plain(t) {
			size := len(values) / len(s.plain(t))
			out[part.Name] = values[i*size : (i+1)*size]
		}
	}
	return out
}

func decodeMatrix(t loader.Tensor, f quant.Format, read Values) (out []float64) {
	m := matrixOf(t)
	m.Format, m.ScaleKind = f, kinds[t.DType]
	for _, word := range read[t.Name] {
		m.Data = binary.LittleEndian.AppendUint32(m.Data, uint32(word))
	}
	for i, scale := range read[module(t.Name)+".scales"] {
		m.Scales = m.ScaleKind.Append(m.Scales, float32(scale))
		m.Biases = m.ScaleKind.Append(m.Biases, float32(read[module(t.Name)+".biases"][i]))
	}
	if err := m.Check(); err != nil {
		panic(fmt.Sprintf("modeltest: %s: %v", t.Name, err))
	}
	row := make([]float64, m.Cols)
	for r := range m.Rows {
		m.Row(row, r)
		out = append(out, row...)
	}
	return out
}
