package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"tfbatch/loader"
)

// mlx-lm loads a quantized checkpoint under its own names alone: it renames and stacks weights, but not their scales. So
// experts become one stack for each projection, whatever the checkpoint had.

// slab is bytes of a tensor of the checkpoint.
type slab struct {
	tensor loader.Tensor
	offset int64
	size   int64
}

func whole(t loader.Tensor) slab { return slab{tensor: t, size: t.Size} }

// projections are the names of mlx-lm for those of a feed-forward.
var projections = map[string]string{
	"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj",
	"gate_proj": "gate_proj", "up_proj": "up_proj", "down_proj": "down_proj",
}

var (
	oneExpert = regexp.MustCompile(`^(.*)\.experts\.([0-9]+)\.(w1|w2|w3|gate_proj|up_proj|down_proj)\.weight$`)
	fused     = regexp.MustCompile(`^(.*)\.experts\.(gate_up_proj|down_proj)$`)
	short     = regexp.MustCompile(`^(.*\.feed_forward)\.(w1|w2|w3)\.weight$`)
)

// stack is the experts of one projection, as far as they were seen.
type stack map[int]loader.Tensor

// arrange lists the dense tensors of the new checkpoint: those of the old in its order, renamed, experts in stacks where
// the first of them was.
func (p *Plan) arrange(modelType string) error {
	stacks := make(map[string]stack)
	for t := range p.source.All() {
		switch name := t.Name; {
		case oneExpert.MatchString(name):
			m := oneExpert.FindStringSubmatch(name)
			to := m[1] + ".switch_mlp." + projections[m[3]] + ".weight"
			if stacks[to] == nil {
				stacks[to] = make(stack)
				p.Tensors = append(p.Tensors, Tensor{Tensor: loader.Tensor{Name: to, DType: t.DType}})
			}
			e, err := strconv.Atoi(m[2])
			if _, twice := stacks[to][e]; err != nil || twice {
				return fmt.Errorf("tensor %q: its number is beyond any expert's, or another's", name)
			}
			stacks[to][e] = t
		case fused.MatchString(name) && len(t.Shape) == 3:
			m := fused.FindStringSubmatch(name)
			p.split(m[1]+".switch_mlp.", m[2], t)
		case modelType == "lfm2_moe" && short.MatchString(name):
			m := short.FindStringSubmatch(name)
			p.add(m[1]+"."+projections[m[2]]+".weight", t.Shape, t.DType, whole(t))
		default:
			p.add(name, t.Shape, t.DType, whole(t))
		}
	}
	for i := range p.Tensors {
		if s := stacks[p.Tensors[i].Name]; s != nil {
			if err := p.Tensors[i].fill(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Plan) add(name string, shape []int, dtype loader.DType, from ...slab) {
	t := Tensor{Tensor: loader.Tensor{Name: name, DType: dtype, Shape: shape}, from: from}
	for _, s := range from {
		t.Size += s.size
	}
	p.Tensors = append(p.Tensors, t)
}

// fill makes t the stack of all experts.
func (t *Tensor) fill(s stack) error {
	numbers := slices.Sorted(maps.Keys(s))
	first := s[numbers[0]]
	for i, e := range numbers {
		one := s[e]
		switch {
		case e != i:
			return fmt.Errorf("%d tensors of %q, but none of expert %d", len(s), t.Name, i)
		case one.DType != first.DType || !slices.Equal(one.Shape, first.Shape):
			return fmt.Errorf("tensor %q is %s %v and %q is %s %v; experts are alike", one.Name, one.DType, one.Shape, first.Name, first.DType, first.Shape)
		}
		t.from, t.Size = append(t.from, whole(one)), t.Size+one.Size
	}
	t.Shape = append([]int{len(s)}, first.Shape...)
	return nil
}

// split takes a fused stack apart: each expert of gate_up_proj has the rows of its gate, then those of its up.
func (p *Plan) split(at, name string, t loader.Tensor) {
	if name == "down_proj" || t.Shape[0] == 0 || t.Shape[1]%2 != 0 {
		p.add(at+name+".weight", t.Shape, t.DType, whole(t))
		return
	}
	half := t.Size / int64(t.Shape[0]) / 2
	for i, part := range []string{"gate_proj", "up_proj"} {
		var from []slab
		for e := range t.Shape[0] {
			from = append(from, slab{t, int64(2*e+i) * half, half})
		}
		p.add(at+part+".weight", []int{t.Shape[0], t.Shape[1] / 2, t.Shape[2]}, t.DType, from...)
	}
}
