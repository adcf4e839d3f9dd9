package modeltest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tfbatch/loader"
)

// mlxNames are what mlx-lm calls the projections of LFM2's sparse models.
var mlxNames = map[string]string{"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}

// mlx renames the tensors of a plain checkpoint as mlx-lm saves it: the kernels of convolutions with their
// last axes swapped and, in the sparse models, other names of projections and one stack for all experts.
func (s Spec) mlx(plain []loader.Tensor) (out []loader.Tensor) {
	for _, t := range plain {
		expert, projection, of := cutExpert(t.Name)
		switch {
		case strings.HasSuffix(t.Name, "conv.conv.weight"):
			t.Shape = []int{t.Shape[0], t.Shape[2], t.Shape[1]}
		case expert > 0:
			continue // in the stack of expert 0
		case expert == 0:
			t.Name = of + "switch_mlp." + cmp.Or(mlxNames[projection], projection) + ".weight"
			t.Shape = append([]int{s.Experts.Count}, t.Shape...)
		case s.Experts.Count > 0:
			for plain, renamed := range mlxNames {
				t.Name = strings.Replace(t.Name, "feed_forward."+plain+".", "feed_forward."+renamed+".", 1)
			}
		}
		out = append(out, t)
	}
	return out
}

// cutExpert takes the name of an expert's matrix apart; expert is -1 for any other tensor.
func cutExpert(name string) (expert int, projection, of string) {
	of, rest, ok := strings.Cut(name, "experts.")
	if ok {
		if n, _ := fmt.Sscanf(strings.ReplaceAll(rest, ".", " "), "%d %s weight", &expert, &projection); n == 2 {
			return expert, projection, of
		}
	}
	return -1, "", ""
}

// plain lists the tensors of the plain checkpoint that t, of this one, holds one after the other.
func (s Spec) plain(t loader.Tensor) (parts []loader.Tensor) {
	of, stack, stacked := strings.Cut(t.Name, "switch_mlp.")
	if !stacked {
		for plain, renamed := range mlxNames {
			if s.MLX {
				t.Name = strings.Replace(t.Name, "feed_forward."+renamed+".", "feed_forward."+plain+".", 1)
			}
		}
		return []loader.Tensor{t}
	}
	projection := module(stack)
	for plain, renamed := range mlxNames {
		if s.lfm2() && projection == renamed {
			projection = plain
		}
	}
	for e := range t.Shape[0] {
		name := fmt.Sprintf("%sexperts.%d.%s.weight", of, e, projection)
		parts = append(parts, loader.Tensor{Name: name, DType: t.DType, Shape: slices.Clone(t.Shape[1:])})
	}
	return parts
}
