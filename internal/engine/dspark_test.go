package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/builtin"
	"tfbatch/internal/cpu"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

// pair is the builtin model and its drafter, on one device.
type pair struct {
	dev   *cpu.Device
	model model.Model
	files *loader.Snapshot // of the drafter
}

func builtinFiles(t testing.TB, name string) *loader.Snapshot {
	t.Helper()
	dir, err := builtin.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openPair(t testing.TB) *pair {
	t.Helper()
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	c, err := families.Open(builtinFiles(t, "gopher-15m"))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := c.Load(t.Context(), dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{dev, m, builtinFiles(t, "gopher-15m-dspark")}
}

// engine is a new one, drafted by a drafter of its own where depth is not 0.
func (p *pair) engine(t testing.TB, lanes int, depth engine.Depth, o dspark.Options) *engine.Engine {
	t.Helper()
	cfg := engine.Config{Lanes: lanes, Pages: 4 * lanes, Chunk: 24, Context: 512, Depth: depth}
	if depth != 0 {
		c, err := dspark.Open(p.files, p.model.Info(), o)
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := c.Load(t.Context(), p.dev, p.model, dspark.Shape{Lanes: lanes, Pages: cfg.Pages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Drafter = d
	}
	e, err := engine.New(p.dev, p.model, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// questions are asked greedily and with every control, one after the other.
func questions(t testing.TB) []*engine.Request {
	t.Helper()
	data, err := builtinFiles(t, "gopher-15m").ReadFile("tokenizer.json", 1<<26)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	var rs []*engine.Request
	for i, q := range []string{
		"What does strings.TrimSpace do?", "How do I read a file line by line in Go?", "Write a function that reverses a slice.",
		"What is the difference between a mutex and a channel?", "How is a map iterated?", "What does fmt.Sprintf return?",
	} {
		ids := tok.Encode("<|startoftext|><|im_start|>user\n" + q + "<|im_end|>\n<|im_start|>assistant\n")
		sampled := samplings[i%len(samplings)].Sampling
		sampled.Seed, sampled.Temperature = 7, 0.8
		rs = append(rs,
			&engine.Request{Key: fmt.Sprint(i, " greedy"), Prompt: ids, MaxTokens: 40},
			&engine.Request{Key: fmt.Sprint(i, " sampled"), Prompt: ids, MaxTokens: 40, Sampling: sampled})
	}
	return rs
}

// TestBuiltinDrafterKeepsReplies is the promise on a real pair: its guesses are kept often, and never seen.
func TestBuiltinDrafterKeepsReplies(t *testing.T) {
	if testing.Short() {
		t.Skip("long replies")
	}
	p := openPair(t)
	rs := questions(t)
	plain := run(t, p.engine(t, 1, 0, dspark.Options{}), rs)
	for _, v := range []struct {
		lanes int
		depth engine.Depth
		dspark.Options
	}{
		{1, 9, dspark.Options{}}, {1, 4, dspark.Options{Trim: true}}, {3, 1, dspark.Options{}}, {3, 9, dspark.Options{Trim: true}},
		{8, 4, dspark.Options{}}, {8, engine.Auto, dspark.Options{Trim: true}}, {2, 2, dspark.Options{Trim: true, Bits: 8}},
	} {
		t.Run(fmt.Sprintf("lanes=%d/%v/trim=%t/bits=%d", v.lanes, v.depth, v.Trim, v.Bits), func(t *testing.T) {
			e := p.engine(t, v.lanes, v.depth, v.Options)
			want, asked := plain, rs
			if v.Bits != 0 { // slow in plain Go
				asked = rs[:2]
				want = map[string]engine.Result{}
				for _, r := range asked {
					key := fmt.Sprintf("%s/%d", r.Key, r.Sample)
					want[key] = plain[key]
				}
			}
			if diff := cmp.Diff(want, run(t, e, asked)); diff != "" {
				t.Errorf("(-plain +drafted):\n%s", diff)
			}
			s := e.Stats()
			t.Logf("%d rounds, %d of %d guesses kept", s.Rounds, s.Accepted, s.Drafted)
			if v.depth != engine.Auto && s.Accepted == 0 {
				t.Errorf("none of %d guesses was kept", s.Drafted)
			}
		})
	}
}

// TestManyRepliesHoldNoMoreMemory runs the builtin pair in waves of the same rows.
func TestManyRepliesHoldNoMoreMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long replies")
	}
	p := openPair(t)
	for _, depth := range []engine.Depth{4, engine.Auto} {
		e := p.engine(t, 4, depth, dspark.Options{Trim: true})
		rs := questions(t)[:6]
		held := func(waves int) int64 {
			for range waves {
				run(t, e, rs)
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // what pools had kept goes with the second
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := held(3)
		if more := held(6) - before; more > 8<<10 {
			t.Errorf("%v: six more waves hold %d bytes more", depth, more)
		}
		runtime.KeepAlive([]any{e, rs, p})
	}
}
