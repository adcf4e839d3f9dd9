package modeltest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Reference is the paper in float64, written for reading: no batch, no cache, no speed. It shares no
// code with package nn and finds its weights by the names of the checkpoint.
type Reference struct {
	Spec    Spec
	Weights Values
}

// Forward returns the logits of every row, and the residual stream after each layer: [layer][row].
func (r *Reference) Forward(ids []int32) (logits [][]float64, taps [][][]float64) {
	embed := r.Weights["model.embed_tokens.weight"]
	h := make([][]float64, len(ids))
	for t, id := range ids {
		h[t] = slices.Clone(embed[int(id)*r.Spec.Hidden:][:r.Spec.Hidden])
	}
	for l := range r.Spec.Layers {
		mixed := r.mix(l, r.norms(h, r.names(l).mixerNorm))
		for t := range h {
			h[t] = add(h[t], mixed[t])
			h[t] = add(h[t], r.feedForward(l, r.norm(h[t], r.names(l).ffnNorm)))
		}
		taps = append(taps, slices.Clone(h))
	}
	head := "model.embed_tokens"
	if r.Spec.Untied {
		head = "lm_head"
	}
	for _, x := range r.norms(h, r.Spec.finalNorm()) {
		logits = append(logits, r.linear(head, x))
	}
	return logits, taps
}

// layerNames are the tensors of a layer that families name differently.
type layerNames struct{ mixerNorm, ffnNorm, out, qNorm, kNorm, gate, up, down string }

func (r *Reference) names(l int) layerNames {
	at := fmt.Sprintf("model.layers.%d.", l)
	if r.Spec.lfm2() {
		ff := at + "feed_forward."
		return layerNames{at + "operator_norm.weight", at + "ffn_norm.weight", "out_proj", "q_layernorm.weight", "k_layernorm.weight", ff + "w1", ff + "w3", ff + "w2"}
	}
	mlp := at + "mlp."
	return layerNames{at + "input_layernorm.weight", at + "post_attention_layernorm.weight", "o_proj", "q_norm.weight", "k_norm.weight", mlp + "gate_proj", mlp + "up_proj", mlp + "down_proj"}
}

func (r *Reference) eps() float64 {
	if r.Spec.lfm2() {
		return 1e-5
	}
	return 1e-6
}

func (r *Reference) mix(l int, x [][]float64) [][]float64 {
	if r.Spec.Layers[l] == 'c' {
		return r.convolve(fmt.Sprintf("model.layers.%d.conv.", l), x)
	}
	return r.attend(fmt.Sprintf("model.layers.%d.self_attn.", l), r.names(l), x)
}

func (r *Reference) convolve(at string, x [][]float64) (out [][]float64) {
	n, taps := r.Spec.Hidden, r.Spec.Kernel
	kernel, bias := r.Weights[at+"conv.weight"], r.Weights[at+"conv.bias"]
	var u [][]float64
	for t := range x {
		bcx := r.linear(at+"in_proj", x[t])
		u = append(u, multiply(bcx[:n], bcx[2*n:]))
		y := make([]float64, n)
		for c := range n {
			for j := range taps {
				if past := t - taps + 1 + j; past >= 0 {
					y[c] += kernel[c*taps+j] * u[past][c]
				}
			}
			if bias != nil {
				y[c] += bias[c]
			}
		}
		out = append(out, r.linear(at+"out_proj", multiply(bcx[n:2*n], y)))
	}
	return out
}

func (r *Reference) attend(at string, names layerNames, x [][]float64) (out [][]float64) {
	s := r.Spec
	var keys, values [][]float64
	for t := range x {
		q := r.turn(r.headNorm(r.linear(at+"q_proj", x[t]), at+names.qNorm), t)
		keys = append(keys, r.turn(r.headNorm(r.linear(at+"k_proj", x[t]), at+names.kNorm), t))
		values = append(values, r.linear(at+"v_proj", x[t]))
		o := make([]float64, s.Q*s.Dim)
		for h := range s.Q {
			kv := h / (s.Q / s.KV) * s.Dim
			p := make([]float64, t+1)
			for i := range p {
				p[i] = dot(q[h*s.Dim:][:s.Dim], keys[i][kv:]) / math.Sqrt(float64(s.Dim))
			}
			for i, w := range softmax(p) {
				for d := range s.Dim {
					o[h*s.Dim+d] += w * values[i][kv+d]
				}
			}
		}
		out = append(out, r.linear(at+names.out, o))
	}
	return out
}

// headNorm norms each head by itself, if the family has such a gain.
func (r *Reference) headNorm(x []float64, gain string) []float64 {
	if r.Weights[gain] == nil {
		return x
	}
	var out []float64
	for head := range slices.Chunk(x, r.Spec.Dim) {
		out = append(out, r.norm(head, gain)...)
	}
	return out
}

// turn rotates element i of every head with element i + Dim/2 by the position's angle.
func (r *Reference) turn(x []float64, position int) []float64 {
	out, half := slices.Clone(x), r.Spec.Dim/2
	for i := range x {
		pair := i % r.Spec.Dim
		if pair >= half {
			continue
		}
		sin, cos := math.Sincos(float64(position) * math.Pow(theta, -2*float64(pair)/float64(r.Spec.Dim)))
		out[i], out[i+half] = x[i]*cos-x[i+half]*sin, x[i+half]*cos+x[i]*sin
	}
	return out
}

func (r *Reference) feedForward(l int, x []float64) []float64 {
	n, e := r.names(l), r.Spec.Experts
	if e.Count == 0 || l < e.Dense {
		return r.gated(n.gate, n.up, n.down, x)
	}
	at := n.gate[:strings.LastIndex(n.gate, ".")+1]
	scores, least := r.scores(r.linear(at+"gate", x))
	chosen := r.choose(scores, r.Weights[at+"expert_bias"])
	sum := least
	for _, i := range chosen {
		sum += scores[i]
	}
	if e.Raw {
		sum = 1
	}
	gate, up, down := r.Spec.ffnNames()
	out := make([]float64, len(x))
	for _, i := range chosen {
		expert := fmt.Sprintf("%sexperts.%d.", at, i)
		for d, y := range r.gated(expert+gate, expert+up, expert+down, x) {
			out[d] += scores[i] / sum * e.Scale * y
		}
	}
	return out
}

// scores are those of all experts, and what is added to their sum.
func (r *Reference) scores(logits []float64) (scores []float64, least float64) {
	if !r.Spec.lfm2() {
		return softmax(logits), 0
	}
	for i, x := range logits {
		logits[i] = 1 / (1 + math.Exp(-x))
	}
	return logits, 1e-6
}

func (r *Reference) choose(scores, bias []float64) []int {
	order := make([]int, len(scores))
	biased := slices.Clone(scores)
	for i := range order {
		order[i] = i
		if bias != nil {
			biased[i] += bias[i]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(biased[b], biased[a]) })
	return order[:r.Spec.Experts.TopK]
}

func (r *Reference) gated(gate, up, down string, x []float64) []float64 {
	g, u := r.linear(gate, x), r.linear(up, x)
	for i := range g {
		g[i] *= u[i] / (1 + math.Exp(-g[i]))
	}
	return r.linear(down, g)
}

// linear multiplies by a weight and adds its bias, if there is one.
func (r *Reference) linear(name string, x []float64) []float64 {
	w, bias := r.Weights[name+".weight"], r.Weights[name+".bias"]
	if w == nil {
		panic("modeltest: no tensor " + name + ".weight")
	}
	out := make([]float64, len(w)/len(x))
	for o := range out {
		out[o] = dot(x, w[o*len(x):])
		if bias != nil {
			out[o] += bias[o]
		}
	}
	return out
}

func (r *Reference) norms(x [][]float64, gain string) (out [][]float64) {
	for _, row := range x {
		out = append(out, r.norm(row, gain))
	}
	return out
}

func (r *Reference) norm(x []float64, gain string) []float64 {
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+r.eps())
	out := multiply(x, r.Weights[gain])
	for i := range out {
		out[i] *= scale
	}
	return out
}

// dot goes over the elements of a.
func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func add(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] += b[i]
	}
	return out
}

func multiply(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] *= b[i]
	}
	return out
}

func softmax(x []float64) []float64 {
	most, sum := slices.Max(x), 0.0
	for i := range x {
		x[i] = math.Exp(x[i] - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}
