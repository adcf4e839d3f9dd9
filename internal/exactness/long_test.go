package exactness

import (
	"fmt"
	"slices"
	"testing"

	"tfbatch/internal/cpu"
	"tfbatch/internal/engine"
	"tfbatch/internal/families"
)

// TestLongPromptsWithDrafts reads prompts that no stage of taps holds in one piece, beside a short row that is
// drafted meanwhile: copies, the builtin drafter and guesses of any kind give the plain replies.
func TestLongPromptsWithDrafts(t *testing.T) {
	lengths := []int{2144}
	if *full {
		lengths = []int{2144, 3000, 3900}
	}
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
	wanted := long(t, lengths)
	c := engine.Config{Lanes: 2, Pages: pages, Chunk: 512, Context: m.Info().Context}
	e, err := engine.New(device, m, c)
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string][]int32{}
	for r := range replies(t, e, wanted) {
		plain[r.Request.Key] = r.Tokens
	}
	for i, w := range ways() {
		depth := []engine.Depth{4, 9, 1, engine.Auto}[i%4]
		if !*full && i != 1 && i != 3 { // the builtin drafter with a depth, and copies with it at any
			continue
		}
		t.Run(fmt.Sprintf("%s/%v", w.name, depth), func(t *testing.T) {
			c := c
			c.Depth = depth
			w.with(t, device, m, &c)
			e, err := engine.New(device, m, c)
			if err != nil {
				t.Fatal(err)
			}
			for r := range replies(t, e, wanted) {
				if !slices.Equal(r.Tokens, plain[r.Request.Key]) {
					t.Errorf("row %s: %v, plain %v", r.Request.Key, r.Tokens, plain[r.Request.Key])
				}
			}
			if s := e.Stats(); depth != engine.Auto && s.Drafted == 0 || s.PrefillTokens < int64(lengths[0]) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// long are a short row and, for each length, two rows whose prompts are the shorter ones one after the other.
func long(t *testing.T, lengths []int) []*engine.Request {
	t.Helper()
	all := shortest(requests(t), 2*prompts)
	short := *all[0]
	short.Sampling.IgnoreEOS = true
	list := []*engine.Request{&short}
	for _, n := range lengths {
		var ids []int32
		for i := 0; len(ids) < n; i = (i + 2) % len(all) {
			ids = append(ids, all[i].Prompt...)
		}
		for _, sampling := range []engine.Sampling{{}, sampled(0)} {
			list = append(list, &engine.Request{
				Key: fmt.Sprint(n, sampling.Temperature), Prompt: ids[len(ids)-n:], MaxTokens: 12, Sampling: sampling,
			})
		}
	}
	return list
}
