package dspark

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/model"
	"tfbatch/loader"
	"tfbatch/quant"
)

// smallTarget is what the drafters below are for.
var smallTarget = model.Info{Arch: "made", Vocab: 97, Hidden: 48, Layers: 4, Context: 4096}

// lender is a target that has ends and nothing between them.
type lender struct {
	model.Model
	embed, head backend.Weight
}

func (l *lender) Info() model.Info                   { return smallTarget }
func (l *lender) Ends() (embed, head backend.Weight) { return l.embed, l.head }

func newLender(t testing.TB, dev backend.Device) *lender {
	t.Helper()
	return &lender{embed: end(t, dev, "embed"), head: end(t, dev, "head")}
}

// end is a weight [Vocab, Hidden] on dev.
func end(t testing.TB, dev backend.Device, name string) backend.Weight {
	t.Helper()
	format := quant.Format{Kind: quant.BF16}
	x := loader.Tensor{Name: name, Shape: []int{smallTarget.Vocab, smallTarget.Hidden}}
	w, err := dev.NewWeight(backend.WeightShape{Experts: 1, Rows: x.Shape[0], Cols: x.Shape[1], Format: format})
	if err != nil {
		t.Fatal(err)
	}
	m := quant.Matrix{Rows: x.Shape[0], Cols: x.Shape[1], Format: format, Data: bf16(values(x))}
	if err := dev.Fill(w, backend.Slot{}, m); err != nil {
		t.Fatal(err)
	}
	return w
}

func bf16(x []float32) []byte {
	data := make([]byte, 0, 2*len(x))
	for _, f := range x {
		data = binary.LittleEndian.AppendUint16(data, backend.RoundBF16(f))
	}
	return data
}

// smallConfig is the config.json of a drafter for it.
func smallConfig() map[string]any {
	return map[string]any{
		"architectures": []string{Architecture}, "model_type": modelType,
		"hidden_size": 48, "vocab_size": 97, "num_hidden_layers": 2, "intermediate_size": 80,
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
		"hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 4096,
		"rope_theta": 1e4, "rope_is_neox_style": false, "block_size": 5,
		"dflash_config": map[string]any{"mask_token_id": 3, "target_layer_ids": []int{0, 3}, "num_target_layers": 4},
		"markov_rank":   16, "markov_head_type": "vanilla", "enable_confidence_head": true,
	}
}

// text is config as JSON.
func text(config map[string]any) []byte {
	data, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return data
}

// tensors are those of the small drafter.
func tensors() []loader.Tensor {
	var list []loader.Tensor
	add := func(name string, shape ...int) {
		list = append(list, loader.Tensor{Name: name, DType: loader.BF16, Shape: shape})
	}
	add("fc.weight", 48, 96)
	add("hidden_norm.weight", 48)
	add("norm.weight", 48)
	for l := range 2 {
		at := fmt.Sprintf("layers.%d.", l)
		add(at+"input_layernorm.weight", 48)
		add(at+"post_attention_layernorm.weight", 48)
		add(at+"self_attn.q_proj.weight", 64, 48)
		add(at+"self_attn.k_proj.weight", 32, 48)
		add(at+"self_attn.v_proj.weight", 32, 48)
		add(at+"self_attn.o_proj.weight", 48, 64)
		add(at+"self_attn.q_norm.weight", 16)
		add(at+"self_attn.k_norm.weight", 16)
		add(at+"mlp.gate_proj.weight", 80, 48)
		add(at+"mlp.up_proj.weight", 80, 48)
		add(at+"mlp.down_proj.weight", 48, 80)
	}
	add("markov_head.markov_w1.weight", 97, 16)
	add("markov_head.markov_w2.weight", 97, 16)
	add("confidence_head.proj.weight", 1, 64)
	add("confidence_head.proj.bias", 1)
	return list
}

// values are those of a tensor: gains about 1, weights that keep activations near 1. They follow from its name.
func values(t loader.Tensor) []float32 {
	h := fnv.New64a()
	io.WriteString(h, t.Name)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	n, cols := 1, t.Shape[len(t.Shape)-1]
	for _, d := range t.Shape {
		n *= d
	}
	center, spread := 0.0, 1.7/math.Sqrt(float64(cols))
	if strings.Contains(t.Name, "norm") {
		center, spread = 1, 0.3
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = backend.WidenBF16(backend.RoundBF16(float32(center + spread*(2*r.Float64()-1))))
	}
	return out
}

// write makes a checkpoint; edit may change the values of a tensor.
func write(t testing.TB, config map[string]any, list []loader.Tensor, edit func(t loader.Tensor, x []float32)) *loader.Snapshot {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, configName), text(config), 0o644); err != nil {
		t.Fatal(err)
	}
	err := loader.Create(dir, list, 1<<30, func(x loader.Tensor, w io.Writer) error {
		v := values(x)
		if edit != nil {
			edit(x, v)
		}
		_, err := w.Write(bf16(v))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(loader.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig is a made drafter whose target is a function: the taps of a row follow from its position and its id.
type rig struct {
	t    testing.TB
	dev  backend.Device
	m    *lender
	d    *Drafter
	taps backend.Buffer
}

const rigRows = 3000 // of one forward

func newRig(t testing.TB, lanes int) *rig {
	t.Helper()
	dev := device(t)
	r := &rig{t: t, dev: dev, m: newLender(t, dev)}
	r.d = r.load(write(t, smallConfig(), tensors(), nil), lanes, false)
	var err error
	if r.taps, err = dev.NewBuffer(rigRows, r.d.cfg.tapWidth()); err != nil {
		t.Fatal(err)
	}
	return r
}

// load loads a drafter for the rig's target.
func (r *rig) load(s *loader.Snapshot, lanes int, trim bool) *Drafter {
	r.t.Helper()
	c, err := Open(s, r.m.Info(), Options{Trim: trim})
	if err != nil {
		r.t.Fatal(err)
	}
	d, _, err := c.Load(context.Background(), r.dev, r.m, Shape{Lanes: lanes, Pages: lanes * pagesPerLane}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	d.least = 0 // whole chains
	return d
}

// watch lets d see rows, and spoils the target's taps afterwards.
func (r *rig) watch(d *Drafter, spans ...span) {
	r.t.Helper()
	var rows backend.Rows
	var data []float32
	for _, s := range spans {
		for i, id := range s.ids {
			rows.Lane = append(rows.Lane, int32(s.lane))
			rows.Pos = append(rows.Pos, int32(s.at+i))
			data = append(data, tapsOf(s.at+i, id, d.cfg.tapWidth())...)
		}
	}
	if err := r.dev.Write(r.taps, data); err != nil {
		r.t.Fatal(err)
	}
	p := r.dev.Begin()
	if err := d.Watch(p, r.taps.Top(len(rows.Lane)), rows); err != nil {
		r.t.Fatal(err)
	}
	if err := p.Commit(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.dev.Write(r.taps, slices.Repeat([]float32{float32(math.NaN())}, len(data))); err != nil {
		r.t.Fatal(err)
	}
}

func tapsOf(pos int, id int32, width int) []float32 {
	r := rand.New(rand.NewPCG(uint64(pos), uint64(id)))
	out := make([]float32, width)
	for i := range out {
		out[i] = 4*r.Float32() - 2
	}
	return out
}

// propose asks d about lanes.
func (r *rig) propose(d *Drafter, most int, lanes ...int) []draft.Ask {
	r.t.Helper()
	asks := make([]draft.Ask, len(lanes))
	for i, lane := range lanes {
		asks[i] = draft.Ask{Lane: lane, Most: most}
	}
	if err := d.Propose(context.Background(), asks); err != nil {
		r.t.Fatal(err)
	}
	return asks
}

// answer is all that a round says about one lane, in bits.
type answer struct {
	ids            []int32
	chance, hidden []uint32
}

// answers of the last round of d.
func answers(d *Drafter, asks []draft.Ask) []answer {
	list := make([]answer, len(asks))
	at := 0
	for i, a := range asks {
		if len(a.IDs) == 0 {
			continue
		}
		list[i] = answer{a.IDs, bits(a.Chance), bits(d.round.hidden[at*d.cfg.hidden:][:len(a.IDs)*d.cfg.hidden])}
		at += len(a.IDs)
	}
	return list
}

func bits(x []float32) []uint32 {
	out := make([]uint32, len(x))
	for i, f := range x {
		out[i] = math.Float32bits(f)
	}
	return out
}

func (a answer) equal(b answer) bool {
	return slices.Equal(a.ids, b.ids) && slices.Equal(a.chance, b.chance) && slices.Equal(a.hidden, b.hidden)
}

// inOneGo is what d answers about a lane that has seen ids but the last in one forward.
func (r *rig) inOneGo(d *Drafter, most int, ids []int32) answer {
	r.t.Helper()
	d.Open(0, ids)
	defer d.Release(0)
	if len(ids) > 1 {
		r.watch(d, span{0, 0, ids[:len(ids)-1]})
	}
	return answers(d, r.propose(d, most, 0))[0]
}

func randomIDs(n int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 7))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(97)
	}
	return ids
}
