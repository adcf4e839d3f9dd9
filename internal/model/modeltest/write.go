package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"tfbatch/loader"
)

// shardBytes is small enough that a tiny checkpoint has several shards and a large one is not hundreds.
func shardBytes(total int64) int64 { return max(total/3, 64<<10) }

// Write makes the checkpoint in the folder dir, streaming: memory does not grow with it. The weights
// follow from seed and the tensors' names alone: stacked experts hold what unstacked ones would, and a
// quantized checkpoint what a dense one would, encoded.
func (s Spec) Write(dir string, seed uint64) error {
	if err := writeJSON(filepath.Join(dir, "config.json"), s.Config()); err != nil {
		return err
	}
	tensors := s.Tensors()
	var total int64
	for _, t := range tensors {
		total += elements(t) * t.DType.Size()
	}
	return loader.Create(dir, tensors, shardBytes(total), func(t loader.Tensor, w io.Writer) error {
		return s.fill(t, w, seed)
	})
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func elements(t loader.Tensor) int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// fillDense writes the values of t, which for stacked experts are those of the tensors it stands for.
func (s Spec) fillDense(t loader.Tensor, w io.Writer, seed uint64) error {
	if s.MLX {
		for _, part := range s.plain(t) {
			if err := fill(part.Name, part.DType, elements(part), part.Shape, w, seed); err != nil {
				return err
			}
		}
		return nil
	}
	at, stack, stacked := strings.Cut(t.Name, "experts.")
	if !stacked || stack != "gate_up_proj" && stack != "down_proj" {
		return fill(t.Name, t.DType, elements(t), t.Shape, w, seed)
	}
	one := loader.Tensor{DType: t.DType, Shape: t.Shape[1:]}
	gate, up, down := s.ffnNames()
	parts := []string{down}
	if stack == "gate_up_proj" {
		parts, one.Shape = []string{gate, up}, []int{t.Shape[1] / 2, t.Shape[2]}
	}
	for e := range t.Shape[0] {
		for _, part := range parts {
			name := fmt.Sprintf("%sexperts.%d.%s.weight", at, e, part)
			if err := fill(name, one.DType, elements(one), one.Shape, w, seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill writes n values of the kind that name asks for: gains about 1, weights of a size that keeps
// activations near 1 in a matrix of shape.
func fill(name string, dtype loader.DType, n int64, shape []int, w io.Writer, seed uint64) error {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.NewPCG(seed, h.Sum64())
	center, spread := float32(0), float32(1.7/math.Sqrt(float64(shape[len(shape)-1])))
	switch {
	case strings.Contains(name, "norm"):
		center, spread = 1, 0.3
	case strings.Contains(name, "bias"):
		spread = 0.2
	case strings.Contains(name, "embed"):
		spread = 1
	}
	const block = 1 << 16
	buf := make([]byte, 0, block*4)
	for n > 0 {
		buf = buf[:0]
		for range min(n, block) {
			unit := float32(int32(r.Uint64())) * 0x1p-31 // in [-1, 1)
			buf = appendValue(buf, dtype, center+spread*unit)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		n -= block
	}
	return nil
}

// appendValue cuts x to a bf16 whatever the type, so that a checkpoint holds the same values in each.
func appendValue(buf []byte, dtype loader.DType, x float32) []byte {
	bits := math.Float32bits(x) &^ 0xffff
	switch dtype {
	case loader.BF16:
		return binary.LittleEndian.AppendUint16(buf, uint16(bits>>16))
	case loader.F32:
		return binary.LittleEndian.AppendUint32(buf, bits)
	}
	panic(fmt.Sprintf("modeltest: cannot write %s", dtype))
}
