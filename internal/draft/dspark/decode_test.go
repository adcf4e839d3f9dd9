package dspark

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// step runs a lane's rows through the target and returns the best id after each; the drafter watches.
func (r *runner) step(s span) []int32 {
	r.t.Helper()
	b := &model.Batch{IDs: s.ids, Rows: backend.Rows{Pages: r.pages}, Taps: true}
	for i := range s.ids {
		b.Heads = append(b.Heads, int32(i))
		b.Rows.Lane = append(b.Rows.Lane, int32(s.lane))
		b.Rows.Pos = append(b.Rows.Pos, int32(s.at+i))
	}
	p := r.dev.Begin()
	out := r.state.Forward(p, b)
	logits := make([]float32, len(s.ids)*r.d.cfg.vocab)
	p.Read(logits, out.Logits)
	if err := r.d.Watch(p, out.Taps, b.Rows); err != nil {
		r.t.Fatal(err)
	}
	if err := p.Commit(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	ids := make([]int32, len(s.ids))
	for i := range ids {
		ids[i], _ = best(logits[i*r.d.cfg.vocab:][:r.d.cfg.vocab])
	}
	return ids
}

// decode continues ids greedily by n tokens, with guesses of the given depth, and counts rounds.
func (r *runner) decode(ids []int32, n, depth int) (reply []int32, rounds int) {
	r.t.Helper()
	r.d.Open(0, ids)
	defer r.d.Release(0)
	drawn := r.step(span{0, 0, ids})
	reply = drawn[len(drawn)-1:]
	r.d.Committed(0, reply)
	for len(reply) < n {
		guess := []int32{}
		if depth > 0 {
			guess = r.propose(depth, 0)[0].IDs
		}
		rows := append([]int32{reply[len(reply)-1]}, guess...)
		drawn := r.step(span{0, len(ids) + len(reply) - 1, rows})
		kept := 1
		for kept < len(drawn) && guess[kept-1] == drawn[kept-1] {
			kept++
		}
		r.d.Committed(0, drawn[:kept])
		reply = append(reply, drawn[:kept]...)
		rounds++
	}
	return reply[:n], rounds
}

// TestBuiltinPairSavesRounds decodes greedily. A drafter that read the wrong rows, or sat one position off, would
// still be harmless; that it lands is what this test is for.
func TestBuiltinPairSavesRounds(t *testing.T) {
	t.Run("as released", func(t *testing.T) { savesRounds(t, Options{}, 5) })
	t.Run("8 bits", func(t *testing.T) { savesRounds(t, Options{Bits: 8}, 1) }) // slow in plain Go
}

func savesRounds(t *testing.T, o Options, cases int) {
	r := newRunner(t, 1)
	r.d = r.drafter(1, o)
	want := golden(t)
	tokens, all := 0, 0
	for i := range cases {
		ids := want.IDs(fmt.Sprintf("ids_%d", i))
		plain, _ := r.decode(ids, 60, 0)
		drafted, rounds := r.decode(ids, 60, 9)
		if !slices.Equal(plain, drafted) {
			t.Errorf("case %d: plain %v, drafted %v", i, plain, drafted)
		}
		tokens, all = tokens+59, all+rounds
	}
	const least = 2.2 // it is 2.48 over all cases, with 8 bits too
	if rate := float64(tokens) / float64(all); rate < least {
		t.Errorf("%.2f tokens a round, want at least %.1f", rate, least)
	}
}
