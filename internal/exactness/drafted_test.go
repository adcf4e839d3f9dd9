package exactness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/builtin"
	"tfbatch/internal/cpu"
	"tfbatch/internal/draft"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/internal/row"
	"tfbatch/loader"
)

// drafted is a way to guess, beside a setup.
type drafted struct {
	name  string
	depth engine.Depth
	lanes int
	with  func(t *testing.T, d backend.Device, m model.Model, c *engine.Config)
}

// way is a drafter.
type way struct {
	name string
	with func(t *testing.T, d backend.Device, m model.Model, c *engine.Config)
}

// ways are the drafters that do not know the replies.
func ways() []way {
	return []way{
		{"copy", func(_ *testing.T, _ backend.Device, _ model.Model, c *engine.Config) { c.Quick = &draft.Copy{} }},
		{"dspark", withDSpark},
		{"dspark in 8 bits", withEightBits},
		{"copy and dspark", func(t *testing.T, d backend.Device, m model.Model, c *engine.Config) {
			c.Quick = &draft.Copy{}
			withDSpark(t, d, m, c)
		}},
		{"hostile", func(_ *testing.T, _ backend.Device, m model.Model, c *engine.Config) {
			c.Drafter = &hostile{random: rand.New(rand.NewPCG(1, 2)), vocab: m.Info().Vocab}
		}},
		{"hostile and quick", func(_ *testing.T, _ backend.Device, m model.Model, c *engine.Config) {
			c.Quick = &hostile{random: rand.New(rand.NewPCG(3, 4)), vocab: m.Info().Vocab}
		}},
	}
}

// arms are the ways to guess: each at every depth, on as many lanes as come by turns, or on all.
func arms(ways []way) []drafted {
	var all []drafted
	lanes := []int{1, 3, 16, 8}
	for i, w := range ways {
		for j, depth := range []engine.Depth{1, 4, 9, engine.Auto} {
			for k, n := range lanes {
				if *full || k == (i+j)%len(lanes) {
					all = append(all, drafted{w.name, depth, n, w.with})
				}
			}
		}
	}
	return all
}

// TestDraftingGivesTheSameHashes is the first promise with guesses: right ones, wrong ones and mad ones.
func TestDraftingGivesTheSameHashes(t *testing.T) {
	golden := readGolden(t)
	n := 24 // fewer hold no text that copies itself
	if *emulated {
		n = few
	}
	if *full {
		n = 2 * prompts
	}
	wanted := shortest(requests(t), n)
	device, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	checkpoint, err := families.Open(snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := checkpoint.Load(t.Context(), device, nil)
	if err != nil {
		t.Fatal(err)
	}
	known := scripted(plainReplies(t, device, m, wanted))
	for i, arm := range arms(append(ways(), known...)) {
		t.Run(fmt.Sprintf("%s/%v/lanes=%d", arm.name, arm.depth, arm.lanes), func(t *testing.T) {
			c := engine.Config{Lanes: arm.lanes, Pages: pages, Chunk: 64, Context: 2048, Depth: arm.depth}
			arm.with(t, device, m, &c)
			e, err := engine.New(device, m, c)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for r := range replies(t, e, shuffled(wanted, uint64(i))) {
				got[r.Request.Key] = row.TokenHash(r.Tokens).String()
			}
			for _, fault := range differences(golden, got) {
				t.Error(fault)
			}
			s := e.Stats()
			if len(got) != n || arm.depth != engine.Auto && s.Drafted == 0 {
				t.Errorf("%d replies, %+v", len(got), s)
			}
			if arm.name == "right" && s.Accepted < s.Drafted*3/4 || arm.name == "wrong" && s.Accepted > 0 {
				t.Errorf("%d of %d guesses landed", s.Accepted, s.Drafted)
			}
		})
	}
}

func withDSpark(t *testing.T, d backend.Device, m model.Model, c *engine.Config) {
	t.Helper()
	openDSpark(t, d, m, c, dspark.Options{Trim: true})
}

func withEightBits(t *testing.T, d backend.Device, m model.Model, c *engine.Config) {
	t.Helper()
	openDSpark(t, d, m, c, dspark.Options{Trim: true, Bits: 8})
}

func openDSpark(t *testing.T, d backend.Device, m model.Model, c *engine.Config, o dspark.Options) {
	t.Helper()
	files, err := builtin.Open("gopher-15m-dspark")
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := dspark.Open(s, m.Info(), o)
	if err != nil {
		t.Fatal(err)
	}
	if c.Drafter, _, err = checkpoint.Load(t.Context(), d, m, dspark.Shape{Lanes: c.Lanes, Pages: c.Pages}, nil); err != nil {
		t.Fatal(err)
	}
}

// hostile guesses more than it is asked for, every time, and is sure of it: the lane's own
// last tokens again, which is sometimes right, or any ids of the vocabulary.
type hostile struct {
	random *rand.Rand
	vocab  int
	lanes  map[int][]int32
}

func (h *hostile) Open(lane int, prompt []int32) {
	if h.lanes == nil {
		h.lanes = map[int][]int32{}
	}
	h.lanes[lane] = slices.Clone(prompt)
}

func (h *hostile) Propose(_ context.Context, asks []draft.Ask) error {
	const beyond = 5
	for i := range asks {
		a := &asks[i]
		said := h.lanes[a.Lane]
		period := 1 + h.random.IntN(len(said))
		for j := range a.Most + beyond {
			id := int32(h.random.IntN(h.vocab))
			if h.random.IntN(4) > 0 {
				id = said[len(said)-period+j%period]
			}
			a.IDs, a.Chance = append(a.IDs, id), append(a.Chance, 1)
		}
	}
	return nil
}

func (h *hostile) Committed(lane int, ids []int32) { h.lanes[lane] = append(h.lanes[lane], ids...) }

func (h *hostile) Release(lane int) { delete(h.lanes, lane) }
