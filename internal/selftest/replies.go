package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/contract"
	"tfbatch/internal/builtin"
	"tfbatch/internal/draft"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

// The whole model is the one that tfbatch brings along, with its drafter.
const (
	builtinModel   = "gopher-15m"
	builtinDrafter = "gopher-15m-dspark"
)

// Drafts are the ways to guess that replies are made with.
var Drafts = []string{"plain", "copy", "dspark"}

// laneCounts are how many lanes they are made on.
var laneCounts = []int{1, 4, 8, 16}

// replies compare those of the whole model with the CPU's on one lane, which are made once.
func (o Options) replies() []part {
	var want [][]int32
	var all []part
	for _, drafts := range Drafts {
		for _, lanes := range laneCounts {
			all = append(all, part{fmt.Sprintf("replies/%s, %d lanes", drafts, lanes), func(ctx context.Context, d backend.Device) (err error) {
				if want == nil {
					if want, err = o.reference(ctx); err != nil {
						return fmt.Errorf("cpu: %w", err)
					}
				}
				m, err := Load(ctx, d)
				if err != nil {
					return err
				}
				got, err := m.Replies(ctx, drafts, lanes, o.questions())
				if err != nil {
					return err
				}
				return SameReplies(got, want)
			}})
		}
	}
	return all
}

// reference is the replies of the CPU.
func (o Options) reference(ctx context.Context) (_ [][]int32, err error) {
	d, err := o.CPU()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	m, err := Load(ctx, d)
	if err != nil {
		return nil, err
	}
	return m.Replies(ctx, Drafts[0], 1, o.questions())
}

// SameReplies names the first reply that differs.
func SameReplies(got, want [][]int32) error {
	for i, ids := range want {
		if !slices.Equal(got[i], ids) {
			return fmt.Errorf("%w: reply %d is %v, the CPU says %v", contract.ErrDifferent, i, got[i], ids)
		}
	}
	return nil
}

// Model is the builtin one on a device.
type Model struct {
	dev   backend.Device
	model model.Model
	tok   *tokenizer.Tokenizer
}

// Load puts the builtin model on d.
func Load(ctx context.Context, d backend.Device) (*Model, error) {
	s, err := open(builtinModel)
	if err != nil {
		return nil, err
	}
	data, err := s.ReadFile("tokenizer.json", 1<<26)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		return nil, err
	}
	c, err := families.Open(s)
	if err != nil {
		return nil, err
	}
	m, _, err := c.Load(ctx, d, nil)
	return &Model{d, m, tok}, err
}

func open(name string) (*loader.Snapshot, error) {
	files, err := builtin.Open(name)
	if err != nil {
		return nil, err
	}
	return loader.Open(files)
}

// Questions are how many there are, and the most tokens of a reply.
type Questions struct{ Count, Tokens int }

func (o Options) questions() Questions { return Questions{16, o.Tokens} }

// Replies makes the replies to questions, with one of Drafts on so many lanes.
func (m *Model) Replies(ctx context.Context, drafts string, lanes int, q Questions) ([][]int32, error) {
	e, err := m.engine(ctx, drafts, lanes)
	if err != nil {
		return nil, err
	}
	waiting := m.questions(q)
	out := make([][]int32, len(waiting))
	for len(waiting) > 0 || e.Active() > 0 {
		for len(waiting) > 0 && e.Room(waiting[0]) {
			if err := e.Admit(waiting[0]); err != nil {
				return nil, err
			}
			waiting = waiting[1:]
		}
		done, err := e.Step(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range done {
			if r.Err != nil {
				return nil, r.Err
			}
			out[r.Request.Sample] = r.Tokens
		}
	}
	return out, nil
}

func (m *Model) engine(ctx context.Context, drafts string, lanes int) (*engine.Engine, error) {
	c := engine.Config{Lanes: lanes, Pages: 2 * lanes, Chunk: 48, Context: 512}
	switch drafts {
	case "copy":
		c.Quick, c.Depth = new(draft.Copy), 4
	case "dspark":
		s, err := open(builtinDrafter)
		if err != nil {
			return nil, err
		}
		d, err := dspark.Open(s, m.model.Info(), dspark.Options{})
		if err != nil {
			return nil, err
		}
		if c.Drafter, _, err = d.Load(ctx, m.dev, m.model, dspark.Shape{Lanes: lanes, Pages: c.Pages}, nil); err != nil {
			return nil, err
		}
		c.Depth = 4
	}
	return engine.New(m.dev, m.model, c)
}

// questions are asked greedily and with sampling in turn. Sample is their number.
func (m *Model) questions(q Questions) []*engine.Request {
	functions := []string{"strings.TrimSpace", "sort.Slice", "fmt.Sprintf", "os.ReadFile", "time.Parse", "errors.Is", "io.Copy", "maps.Keys"}
	var list []*engine.Request
	for i := range q.Count {
		name := functions[i/2%len(functions)]
		r := &engine.Request{Key: name, Sample: i, MaxTokens: q.Tokens}
		r.Prompt = m.tok.Encode("<|startoftext|><|im_start|>user\nWhat does " + name + " do?<|im_end|>\n<|im_start|>assistant\n")
		if i%2 == 1 {
			r.Sampling = engine.Sampling{Temperature: 0.8, TopP: 0.95, TopK: 40, Seed: 7}
		}
		list = append(list, r)
	}
	return list
}
