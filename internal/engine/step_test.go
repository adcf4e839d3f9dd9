package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// cheap is a model that costs next to nothing beside the engine: its rows are copies of eight.
func cheap(vocab int) enginetest.Model {
	rows := make([][]float32, 8)
	for i := range rows {
		rows[i] = make([]float32, vocab)
		enginetest.Model{}.Fill(uint64(i), rows[i])
		rows[i][i*3] = 30 // a reply that repeats itself
	}
	return enginetest.Model{
		Vocab: vocab, Context: longContext, Order: 1,
		Logits: func(history uint64, row []float32) { copy(row, rows[history%8]) },
	}
}

const (
	longContext = 1 << 15
	longPages   = longContext / 256
)

// fill gives e lanes with replies as long as they can be.
func fill(t testing.TB, e *engine.Engine, lanes int, s engine.Sampling) {
	t.Helper()
	for i := range lanes {
		admit(t, e, &engine.Request{Key: fmt.Sprint(i), Prompt: prompt(i, 8), MaxTokens: longContext - 8, Sampling: s})
	}
}

func admit(t testing.TB, e *engine.Engine, r *engine.Request) {
	t.Helper()
	if err := e.Admit(r); err != nil {
		t.Fatal(err)
	}
}

func TestStepAllocatesNothingOnceWarm(t *testing.T) {
	if testing.Short() {
		t.Skip("long replies")
	}
	for _, depth := range []engine.Depth{0, 6, engine.Auto} {
		e := newEngine(t, cheap(512), engine.Config{
			Lanes: 8, Pages: 8 * longPages, Chunk: 64, Context: longContext, Quick: &draft.Copy{}, Depth: depth,
		})
		fill(t, e, 8, engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.9, PresencePenalty: 0.1})
		step := func() {
			if _, err := e.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3000 {
			step()
		}
		// Two are the made device's, its pass and its logits.
		if n := testing.AllocsPerRun(200, step); n > 2 {
			t.Errorf("%s: %v allocations a step", depth, n)
		}
	}
}

// BenchmarkStep is the engine's own cost: the model and the device do almost nothing.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name  string
		vocab int
		depth engine.Depth
		s     engine.Sampling
	}{
		{"greedy", 8192, 0, engine.Sampling{}},
		{"greedy,copy", 8192, 8, engine.Sampling{}},
		{"greedy,copy,auto", 8192, engine.Auto, engine.Sampling{}},
		{"sampled", 8192, 0, engine.Sampling{Temperature: 1}},
		{"top_k=20,top_p=0.95", 8192, 0, engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95}},
		{"greedy", 65536, 0, engine.Sampling{}},
	} {
		for _, lanes := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/vocab=%d/lanes=%d", c.name, c.vocab, lanes), func(b *testing.B) {
				m := cheap(c.vocab)
				m.Trust = true
				e := newEngine(b, m, engine.Config{
					Lanes: lanes, Pages: lanes * longPages, Chunk: 64, Context: longContext, Quick: &draft.Copy{}, Depth: c.depth,
				})
				fill(b, e, lanes, c.s)
				b.ReportAllocs()
				for b.Loop() {
					done, err := e.Step(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					for _, d := range done {
						admit(b, e, d.Request)
					}
				}
				s := e.Stats()
				b.ReportMetric(float64(s.Tokens)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

// clocked is a device that works a millisecond between two looks at its clock.
type clocked struct {
	enginetest.Device
	looks *int
}

func (c clocked) Busy() time.Duration {
	*c.looks++
	return time.Duration(*c.looks) * time.Millisecond
}

func TestTheDevicesOwnTimeIsCounted(t *testing.T) {
	e, err := engine.New(clocked{looks: new(int)}, cheap(512), engine.Config{Lanes: 1, Pages: longPages, Chunk: 64, Context: longContext})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, 1, engine.Sampling{})
	for range 5 {
		if _, err := e.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := e.Stats(); s.Busy != 5*time.Millisecond {
		t.Errorf("busy for %v in %d forwards, want 5ms", s.Busy, s.Rounds)
	}
}
