package modeltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Exact checks that how rows are put together cannot be seen in a bit of any result: chunks, lanes, and
// rows that were taken back. Both ways of keeping K and V are tried.
func Exact(t *testing.T, on Subject) {
	for _, kvF32 := range []bool{true, false} {
		t.Run(fmt.Sprintf("chunks/kvF32=%t", kvF32), func(t *testing.T) { exactChunks(t, on, kvF32) })
		t.Run(fmt.Sprintf("lanes/kvF32=%t", kvF32), func(t *testing.T) { exactLanes(t, on, kvF32) })
		t.Run(fmt.Sprintf("rollback/kvF32=%t", kvF32), func(t *testing.T) { exactRollback(t, on, kvF32) })
	}
	t.Run("heads", func(t *testing.T) { exactHeads(t, on) })
	t.Run("steady", func(t *testing.T) { steady(t, on) })
}

// exactHeads asks for the logits of some rows, and of none.
func exactHeads(t *testing.T, on Subject) {
	ids := randomIDs(9, on.Model.Info().Vocab, 1)
	all := NewLanes(t, on, 1, 1, false).Forward(Run{IDs: ids})
	for _, heads := range [][]int32{{}, {8}, {0, 3, 4, 8}} {
		lanes := NewLanes(t, on, 1, 1, false)
		b := lanes.batch(Run{IDs: ids})
		b.Heads = heads
		want := Rows{Taps: all.Taps}
		for _, row := range heads {
			want.Logits = append(want.Logits, all.Logits[row])
		}
		same(t, fmt.Sprintf("heads %v", heads), lanes.forward(b), want)
	}
}

// steady checks that a forward in the steady state allocates views and little else.
func steady(t *testing.T, on Subject) {
	lanes := NewLanes(t, on, 1, 1, false)
	lanes.Forward(Run{IDs: randomIDs(64, on.Model.Info().Vocab, 1)})
	b := lanes.batch(Run{At: 64, IDs: []int32{1}})
	b.Heads = []int32{0}
	const most = 60 // objects; a forward cuts some twenty buffers to its rows
	allocs := testing.AllocsPerRun(20, func() {
		p := on.Device.Begin()
		lanes.state.Forward(p, b)
		if err := p.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.Rows.Pos[0]++
	})
	if allocs > most {
		t.Errorf("a forward makes %v objects, want at most %d", allocs, most)
	}
}

// promptLength takes a lane into its second page.
const promptLength = 300

// randomIDs are n ids, the same for the same seed.
func randomIDs(n, vocab int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(int32(vocab))
	}
	return ids
}

// inChunks runs a lane's ids in forwards of size rows.
func inChunks(lanes *Lanes, lane int, ids []int32, size int) (all Rows) {
	for at := 0; at < len(ids); at += size {
		rows := lanes.Forward(Run{Lane: lane, At: at, IDs: ids[at:min(at+size, len(ids))]})
		all.Logits = append(all.Logits, rows.Logits...)
		all.Taps = append(all.Taps, rows.Taps...)
	}
	return all
}

func exactChunks(t *testing.T, on Subject, kvF32 bool) {
	ids := randomIDs(promptLength, on.Model.Info().Vocab, 1)
	whole := NewLanes(t, on, 1, 1, kvF32).Forward(Run{IDs: ids})
	for _, size := range []int{1, 7, 64, 256} {
		same(t, fmt.Sprintf("chunks of %d", size), inChunks(NewLanes(t, on, 1, 1, kvF32), 0, ids, size), whole)
	}
}

// exactLanes feeds lanes of all lengths in uneven pieces, several lanes in every forward.
func exactLanes(t *testing.T, on Subject, kvF32 bool) {
	lengths := []int{1, 2, 40, promptLength, 100, 3, 17}
	prompts, alone, got := make([][]int32, len(lengths)), make([]Rows, len(lengths)), make([]Rows, len(lengths))
	for lane, n := range lengths {
		prompts[lane] = randomIDs(n, on.Model.Info().Vocab, uint64(lane))
		alone[lane] = NewLanes(t, on, 1, 1, kvF32).Forward(Run{IDs: prompts[lane]})
	}
	lanes := NewLanes(t, on, len(lengths), 1, kvF32)
	r := rand.New(rand.NewPCG(3, 3))
	for runs := somePieces(r, prompts, got); len(runs) > 0; runs = somePieces(r, prompts, got) {
		rows := lanes.Forward(runs...)
		for _, run := range runs {
			n := len(run.IDs)
			got[run.Lane].Logits = append(got[run.Lane].Logits, rows.Logits[:n]...)
			got[run.Lane].Taps = append(got[run.Lane].Taps, rows.Taps[:n]...)
			rows = Rows{rows.Logits[n:], rows.Taps[n:]}
		}
	}
	for lane := range lengths {
		same(t, fmt.Sprintf("lane %d", lane), got[lane], alone[lane])
	}
}

// somePieces are the next few ids of about half the lanes that have any left, in random order.
func somePieces(r *rand.Rand, prompts [][]int32, got []Rows) (runs []Run) {
	for _, lane := range r.Perm(len(prompts)) {
		at := len(got[lane].Logits)
		left := prompts[lane][at:]
		if len(left) > 0 && (len(runs) == 0 || r.IntN(2) == 0) {
			runs = append(runs, Run{lane, at, left[:min(len(left), 1+r.IntN(30))]})
		}
	}
	return runs
}

// exactRollback guesses wrongly at every step, by all widths of the window, and takes it back.
func exactRollback(t *testing.T, on Subject, kvF32 bool) {
	const window, start, steps = 8, 250, 20 // over the end of a page
	vocab := on.Model.Info().Vocab
	ids := randomIDs(start+steps, vocab, 5)
	want := NewLanes(t, on, 1, window, kvF32).Forward(Run{IDs: ids})
	lanes := NewLanes(t, on, 1, window, kvF32)
	got := lanes.Forward(Run{IDs: ids[:start]})
	for step := range steps {
		at := start + step
		guess := append([]int32{ids[at]}, randomIDs(step%window, vocab, uint64(step))...)
		rows := lanes.Forward(Run{At: at, IDs: guess})
		got.Logits = append(got.Logits, rows.Logits[0])
		got.Taps = append(got.Taps, rows.Taps[0])
	}
	same(t, "after rollbacks", got, want)
}

// same fails at the first bit that differs.
func same(t *testing.T, what string, got, want Rows) {
	t.Helper()
	sameBits(t, what+": logits", got.Logits, want.Logits)
	sameBits(t, what+": taps", got.Taps, want.Taps)
}

func sameBits(t *testing.T, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for row := range want {
		for i, w := range want[row] {
			if g := got[row][i]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("%s: row %d, element %d is %v, want %v", what, row, i, g, w)
			}
		}
	}
}

// against compares a model of a made checkpoint with the float64 reference.
func against(t *testing.T, on Subject, r *Reference) {
	t.Helper()
	ids := randomIDs(40, r.Spec.Vocab, 11)
	rows := NewLanes(t, on, 1, 1, true).Forward(Run{IDs: ids})
	logits, taps := r.Forward(ids)
	near(t, "logits", rows.Logits, flatten(logits), exactKV.logits)
	for layer := range taps {
		near(t, fmt.Sprintf("tap %d", layer), tapOf(rows, layer, r.Spec.Hidden), flatten(taps[layer]), exactKV.taps)
	}
}

func flatten(rows [][]float64) (out []float64) {
	for _, row := range rows {
		out = append(out, row...)
	}
	return out
}
