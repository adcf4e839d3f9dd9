// Package modeltest holds a GPU device to the CPU's replies on a whole model: the one that
// tfbatch brings along, with its drafter.
package modeltest

import (
	"fmt"
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
	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

// Size is how much to ask for: a GPU made of a CPU is slow.
type Size struct {
	Prompts, Tokens int
	Lanes           []int
}

// Run compares replies on dev, plain and drafted, greedy and sampled, with those of the CPU
// device on one lane.
func Run(t *testing.T, dev backend.Device, size Size) {
	ref, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	rs := requests(t, size)
	want := replies(t, load(t, ref).engine(t, 1, "plain"), rs)
	p := load(t, dev)
	for _, drafts := range []string{"plain", "copy", "dspark"} {
		for _, lanes := range size.Lanes {
			t.Run(fmt.Sprintf("%s/%d lanes", drafts, lanes), func(t *testing.T) {
				got := replies(t, p.engine(t, lanes, drafts), rs)
				for key, ids := range want {
					if !slices.Equal(got[key], ids) {
						t.Errorf("%s: %v, the CPU says %v", key, got[key], ids)
					}
				}
			})
		}
	}
}

// loaded is the model on a device.
type loaded struct {
	dev   backend.Device
	model model.Model
}

func load(t *testing.T, dev backend.Device) loaded {
	t.Helper()
	c, err := families.Open(files(t, "gopher-15m"))
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := c.Load(t.Context(), dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	return loaded{dev, m}
}

func files(t *testing.T, name string) *loader.Snapshot {
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

func (l loaded) engine(t *testing.T, lanes int, drafts string) *engine.Engine {
	t.Helper()
	cfg := engine.Config{Lanes: lanes, Pages: 2 * lanes, Chunk: 48, Context: 512}
	switch drafts {
	case "copy":
		cfg.Quick, cfg.Depth = new(draft.Copy), 4
	case "dspark":
		c, err := dspark.Open(files(t, "gopher-15m-dspark"), l.model.Info(), dspark.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := c.Load(t.Context(), l.dev, l.model, dspark.Shape{Lanes: lanes, Pages: cfg.Pages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Drafter, cfg.Depth = d, 4
	}
	e, err := engine.New(l.dev, l.model, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// requests asks size.Prompts questions, every second one with sampling.
func requests(t *testing.T, size Size) []*engine.Request {
	t.Helper()
	data, err := files(t, "gopher-15m").ReadFile("tokenizer.json", 1<<26)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	functions := []string{"strings.TrimSpace", "sort.Slice", "fmt.Sprintf", "os.ReadFile", "time.Parse", "errors.Is", "io.Copy", "maps.Keys"}
	var rs []*engine.Request
	for i := range size.Prompts {
		q := fmt.Sprintf("What does %s do?", functions[i%len(functions)])
		r := &engine.Request{Key: fmt.Sprint(i, " ", q), MaxTokens: size.Tokens}
		r.Prompt = tok.Encode("<|startoftext|><|im_start|>user\n" + q + "<|im_end|>\n<|im_start|>assistant\n")
		if i%2 == 1 {
			r.Sampling = engine.Sampling{Temperature: 0.8, TopP: 0.95, TopK: 40, Seed: 7}
		}
		rs = append(rs, r)
	}
	return rs
}

// replies runs the requests to their end.
func replies(t *testing.T, e *engine.Engine, rs []*engine.Request) map[string][]int32 {
	t.Helper()
	got := map[string][]int32{}
	for len(rs) > 0 || e.Active() > 0 {
		for len(rs) > 0 && e.Room(rs[0]) {
			if err := e.Admit(rs[0]); err != nil {
				t.Fatal(err)
			}
			rs = rs[1:]
		}
		done, err := e.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range done {
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			got[d.Request.Key] = d.Tokens
		}
	}
	return got
}
