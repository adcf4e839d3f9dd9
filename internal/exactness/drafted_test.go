package exactness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestDraftingGivesTheSameHashes is the first promise with guesses: right ones, wrong ones and mad ones, for rows
// that join and leave at any round.
func TestDraftingGivesTheSameHashes(t *testing.T) {
	golden := readGolden(t)
	all := requests(t)
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
	known := scripted(plainReplies(t, device, m, shortest(all, drafts(""))))
	for i, arm := range arms(append(ways(), known...)) {
		t.Run(fmt.Sprintf("%s/%v/lanes=%d", arm.name, arm.depth, arm.lanes), func(t *testing.T) {
			c := engine.Config{Lanes: arm.lanes, Pages: pages, Chunk: 64, Context: 2048, Depth: arm.depth}
			arm.with(t, device, m, &c)
			e, err := engine.New(device, m, c)
			if err != nil {
				t.Fatal(err)
			}
			n, got := drafts(arm.name), map[string]string{}
			for r := range restless(t, e, shuffled(shortest(all, n), uint64(i)), uint64(i)) {
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

// drafts is how many requests an arm is asked for.
func drafts(arm string) int {
	switch {
	case *full:
		return 2 * prompts
	case *emulated:
		return few
	case strings.HasPrefix(arm, "copy"):
		return 24 // fewer hold no text that copies itself
	}
	return 16
}

// TestGuessesThatAreNoIDsEndTheRun is the arm that gives no hashes: a guess outside the vocabulary, of a drafter that
// was good for a while, ends the run by name, and what the rows have said until then is the golden text.
func TestGuessesThatAreNoIDsEndTheRun(t *testing.T) {
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
	wanted := shortest(requests(t), few)
	plain := plainReplies(t, device, m, wanted)
	for _, bad := range []int32{-1, int32(m.Info().Vocab), math.MaxInt32} {
		c := engine.Config{Lanes: few, Pages: pages, Chunk: 64, Context: 2048, Depth: 4}
		left := 8
		c.Drafter = &script{known: plain, lanes: map[int]*reading{}, turn: func(right int32) int32 {
			if left--; left < 0 {
				return bad
			}
			return right
		}}
		e, err := engine.New(device, m, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range wanted {
			if err := e.Admit(r); err != nil {
				t.Fatal(err)
			}
		}
		for err == nil && e.Active() > 0 {
			_, err = e.Step(t.Context())
		}
		if !errors.Is(err, draft.ErrNonfinite) {
			t.Errorf("guess of id %d: got error %v, want %v", bad, err, draft.ErrNonfinite)
		}
		for _, r := range wanted {
			begun, _ := e.Suspend(r)
			if !slices.ContainsFunc(plain, func(s said) bool {
				return slices.Equal(s.prompt, r.Prompt) && len(begun) <= len(s.reply) && slices.Equal(begun, s.reply[:len(begun)])
			}) {
				t.Errorf("guess of id %d: row %s has said %v", bad, r.Key, begun)
			}
		}
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
// last tokens again, which is sometimes right, or any ids of the vocabulary. What is beyond is no id at all.
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
		for j := range a.Most {
			id := int32(h.random.IntN(h.vocab))
			if h.random.IntN(4) > 0 {
				id = said[len(said)-period+j%period]
			}
			a.IDs, a.Chance = append(a.IDs, id), append(a.Chance, 1)
		}
		for j := range beyond {
			a.IDs, a.Chance = append(a.IDs, int32(j%2*(h.vocab+1)-1)), append(a.Chance, float32(math.NaN()))
		}
	}
	return nil
}

func (h *hostile) Committed(lane int, ids []int32) { h.lanes[lane] = append(h.lanes[lane], ids...) }

func (h *hostile) Release(lane int) { delete(h.lanes, lane) }
