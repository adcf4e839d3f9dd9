package exactness

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

var texts = flag.String("texts", "", "a JSON list of {user, text} to measure accuracy on, instead of the prompts")

// TestInt8IsNear reads real text in both arithmetics and compares what they say comes next. The bounds are some
// times what is measured: they would see a kernel that drops a group, not one that rounds otherwise.
func TestInt8IsNear(t *testing.T) {
	list := passages(t)
	for _, bits := range []int{8, 4} {
		t.Run(fmt.Sprintf("%d bits", bits), func(t *testing.T) {
			files := encode(t, bits).snapshot(t)
			d := distanceOf(reader(t, files, false), reader(t, files, true), list)
			t.Log(d)
			if d.rows < 1000 || d.divergence() > 0.01 || d.agreement() < 0.96 {
				t.Errorf("%v; want a mean below 0.01 and an agreement above 0.96 over a thousand positions", d)
			}
			codes := distanceOf(reader(t, snapshot(t), false), reader(t, files, false), list)
			t.Logf("of the codes themselves, against the model in bf16: %v", codes)
		})
	}
}

// passages are the ids of some texts.
func passages(t *testing.T) (list [][]int32) {
	t.Helper()
	if *texts == "" {
		for i, r := range requests(t) {
			if i%4 == 0 { // of two of each prompt
				list = append(list, r.Prompt[:min(len(r.Prompt), backend.PageKeys)])
			}
		}
		return list
	}
	data, err := os.ReadFile(*texts)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ User, Text string }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	tok := openTokenizer(t)
	for _, p := range all {
		ids := tok.Encode("<|startoftext|><|im_start|>user\n" + p.User + "<|im_end|>\n<|im_start|>assistant\n" + p.Text + "<|im_end|>")
		list = append(list, ids[:min(len(ids), backend.PageKeys)])
	}
	return list
}

// reader makes a function that reads a text and gives the logits after each of its tokens.
func reader(t *testing.T, files *loader.Snapshot, int8 bool) func(ids []int32) [][]float32 {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Int8: int8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	checkpoint, err := families.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := checkpoint.Load(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	state, err := m.NewState(model.Shape{Lanes: 1, Pages: 1, Rows: backend.PageKeys, Heads: backend.PageKeys, Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	return func(ids []int32) (rows [][]float32) {
		b := &model.Batch{IDs: ids, Rows: backend.Rows{Pages: [][]int32{{0}}}}
		for i := range ids {
			b.Rows.Lane, b.Rows.Pos, b.Heads = append(b.Rows.Lane, 0), append(b.Rows.Pos, int32(i)), append(b.Heads, int32(i))
		}
		p := d.Begin()
		logits := make([]float32, len(ids)*m.Info().Vocab)
		p.Read(logits, state.Forward(p, b).Logits)
		if err := p.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for ; len(logits) > 0; logits = logits[m.Info().Vocab:] {
			rows = append(rows, logits[:m.Info().Vocab])
		}
		return rows
	}
}

// distance is how far the distributions of one model are from those of another.
type distance struct {
	rows, agree int
	sum, worst  float64 // of the divergence, in nats
}

func (d distance) divergence() float64 { return d.sum / float64(d.rows) }
func (d distance) agreement() float64  { return float64(d.agree) / float64(d.rows) }

func (d distance) String() string {
	return fmt.Sprintf("%d positions, KL mean %.5f and at most %.3f nats, the same most likely token at %.2f %%",
		d.rows, d.divergence(), d.worst, 100*d.agreement())
}

func distanceOf(truth, other func(ids []int32) [][]float32, list [][]int32) (d distance) {
	for _, ids := range list {
		a, b := truth(ids), other(ids)
		for i := range a {
			kl, same := diverge(a[i], b[i])
			d.rows, d.sum, d.worst = d.rows+1, d.sum+kl, max(d.worst, kl)
			if same {
				d.agree++
			}
		}
	}
	return d
}

// diverge is KL(p‖q) of the distributions of two rows of logits, and whether their most likely tokens agree.
func diverge(p, q []float32) (kl float64, same bool) {
	lp, bestP := logSoftmax(p)
	lq, bestQ := logSoftmax(q)
	for i := range lp {
		kl += math.Exp(lp[i]) * (lp[i] - lq[i])
	}
	return kl, bestP == bestQ
}

func logSoftmax(x []float32) (logs []float64, best int) {
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v - x[best]))
	}
	for _, v := range x {
		logs = append(logs, float64(v-x[best])-math.Log(sum))
	}
	return logs, best
}
