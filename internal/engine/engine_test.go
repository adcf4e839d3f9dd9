package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
)

// small is a model that ends some replies by itself.
var small = enginetest.Model{Vocab: 61, Context: 4096, EOS: []int32{7}}

func newEngine(t testing.TB, m enginetest.Model, cfg engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(enginetest.Device{}, m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// prompt is n ids that depend on seed.
func prompt(seed, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((seed*31 + i*i + 3*i) % 61)
	}
	return ids
}

// requests are count rows of mixed lengths with the given sampling.
func requests(count int, s engine.Sampling) []*engine.Request {
	var rs []*engine.Request
	for i := range count {
		rs = append(rs, &engine.Request{
			Key: fmt.Sprint("row-", i), Prompt: prompt(i, 1+i*37%300), MaxTokens: 1 + i*11%40, Sampling: s,
		})
	}
	return rs
}

// run drives e over rs in order, admitting whenever there is room, and returns the results by row key.
// after, if any, is called after every step.
func run(t testing.TB, e *engine.Engine, rs []*engine.Request, after ...func()) map[string]engine.Result {
	t.Helper()
	got := make(map[string]engine.Result)
	for len(rs) > 0 || e.Active() > 0 {
		for len(rs) > 0 && e.Room(rs[0]) {
			if err := e.Admit(rs[0]); err != nil {
				t.Fatal(err)
			}
			rs = rs[1:]
		}
		if e.Active() == 0 {
			t.Fatalf("nothing runs and there is no room for %q", rs[0].Key)
		}
		done, err := e.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range after {
			f()
		}
		for _, d := range done {
			key := fmt.Sprintf("%s/%d", d.Request.Key, d.Request.Sample)
			if _, twice := got[key]; twice {
				t.Fatalf("row %s came back twice", key)
			}
			d.Request = nil
			got[key] = d
		}
	}
	return got
}

// samplings are the ways to draw that every promise is tried with.
var samplings = []struct {
	name string
	engine.Sampling
}{
	{"greedy", engine.Sampling{}},
	{"sampled", engine.Sampling{Seed: 3, Temperature: 1}},
	{"cut", engine.Sampling{Seed: 4, Temperature: 0.8, TopK: 20, TopP: 0.9, MinP: 0.05}},
	{"penalised", engine.Sampling{
		Seed: 5, Temperature: 1.2, RepetitionPenalty: 1.3, PresencePenalty: 0.4, FrequencyPenalty: 0.2,
		LogitBias: map[int32]float32{5: 2, 9: -100},
	}},
}

func TestRepliesDoNotDependOnLanesOrChunk(t *testing.T) {
	for _, s := range samplings {
		t.Run(s.name, func(t *testing.T) {
			rs := requests(40, s.Sampling)
			want := run(t, newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 512, Context: 512}), rs)
			for _, lanes := range []int{1, 3, 8, 16} {
				for _, chunk := range []int{1, 7, 64, 512} {
					e := newEngine(t, small, engine.Config{Lanes: lanes, Pages: 2 * lanes, Chunk: chunk, Context: 512})
					if diff := cmp.Diff(want, run(t, e, rs)); diff != "" {
						t.Errorf("lanes %d, chunk %d (-one lane +this):\n%s", lanes, chunk, diff)
					}
				}
			}
		})
	}
}

func TestPenaltiesHearTheReply(t *testing.T) {
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 50, Context: 256})
	got := run(t, e, []*engine.Request{{
		Prompt: prompt(1, 5), MaxTokens: 50, Sampling: engine.Sampling{PresencePenalty: 100, IgnoreEOS: true},
	}})["/0"].Tokens
	if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != 50 {
		t.Errorf("%d different ids in 50 tokens that may not repeat: %v", n, got)
	}
}

// A reply is drawn from its seed, key and sample, and from each of them.
func TestDrawsAreKeyedByTheRow(t *testing.T) {
	base := engine.Request{Key: "a", Prompt: prompt(1, 9), MaxTokens: 40, Sampling: engine.Sampling{Seed: 1, Temperature: 2}}
	reply := func(edit func(*engine.Request)) string {
		r := base
		edit(&r)
		r.Sampling.IgnoreEOS = true
		e := newEngine(t, small, engine.Config{Lanes: 2, Pages: 2, Chunk: 16, Context: 128})
		for _, res := range run(t, e, []*engine.Request{&r}) {
			return fmt.Sprint(res.Tokens)
		}
		return ""
	}
	seen := map[string]string{}
	for name, edit := range map[string]func(*engine.Request){
		"base":   func(*engine.Request) {},
		"seed":   func(r *engine.Request) { r.Sampling.Seed = 2 },
		"key":    func(r *engine.Request) { r.Key = "b" },
		"sample": func(r *engine.Request) { r.Sample = 1 },
	} {
		tokens := reply(edit)
		if other, ok := seen[tokens]; ok {
			t.Errorf("%s and %s gave the same reply", name, other)
		}
		if again := reply(edit); again != tokens {
			t.Errorf("%s: two replies: %s and %s", name, tokens, again)
		}
		seen[tokens] = name
	}
}

func TestReplyEnds(t *testing.T) {
	free := small
	free.EOS = nil
	reply := func(m enginetest.Model, r engine.Request) engine.Result {
		r.Prompt = prompt(5, 20)
		e := newEngine(t, m, engine.Config{Lanes: 1, Pages: 1, Chunk: 16, Context: 64})
		return run(t, e, []*engine.Request{&r})["/0"]
	}
	whole := reply(free, engine.Request{MaxTokens: 30}).Tokens
	end := whole[11]
	first := slices.Index(whole, end)
	ending := small
	ending.EOS = []int32{end}

	for _, c := range []struct {
		name   string
		m      enginetest.Model
		r      engine.Request
		tokens int
		finish engine.Finish
	}{
		{"max tokens", free, engine.Request{MaxTokens: 30}, 30, engine.FinishLength},
		{"one token", free, engine.Request{MaxTokens: 1}, 1, engine.FinishLength},
		{"context", free, engine.Request{MaxTokens: 1000}, 44, engine.FinishContext},
		{"max tokens at the context", free, engine.Request{MaxTokens: 44}, 44, engine.FinishLength},
		{"end token is kept", ending, engine.Request{MaxTokens: 30}, first + 1, engine.FinishStop},
		{"stop id", free, engine.Request{MaxTokens: 30, Sampling: engine.Sampling{StopIDs: []int32{end}}}, first + 1, engine.FinishStop},
		{"end token as the last one", ending, engine.Request{MaxTokens: first + 1}, first + 1, engine.FinishStop},
		{"end token ignored", ending, engine.Request{MaxTokens: 30, Sampling: engine.Sampling{IgnoreEOS: true}}, 30, engine.FinishLength},
		{"stopper", free, engine.Request{MaxTokens: 30, Stop: &stopAfter{n: 9}}, 9, engine.FinishStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := reply(c.m, c.r)
			want := engine.Result{Tokens: whole[:min(c.tokens, len(whole))], Finish: c.finish}
			got.Tokens = got.Tokens[:min(len(got.Tokens), len(whole))]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// stopAfter ends a reply at its nth token.
type stopAfter struct{ n int }

func (s *stopAfter) Push(int32) bool { s.n--; return s.n == 0 }

func TestAdmitRefusesByName(t *testing.T) {
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 2, Chunk: 16, Context: 2048})
	ok := engine.Request{Prompt: []int32{1}, MaxTokens: 1}
	for _, c := range []struct {
		name string
		edit func(*engine.Request)
		want string
	}{
		{"empty prompt", func(r *engine.Request) { r.Prompt = nil }, "prompt is empty"},
		{"no tokens", func(r *engine.Request) { r.MaxTokens = 0 }, "max tokens is 0"},
		{"negative tokens", func(r *engine.Request) { r.MaxTokens = -3 }, "max tokens is -3"},
		{"longer than the context", func(r *engine.Request) { r.Prompt = prompt(0, 2048) }, "prompt has 2048 tokens"},
		{"more pages than there are", func(r *engine.Request) { r.MaxTokens = 513 }, "need 3 pages of the 2"},
		{"id past the vocabulary", func(r *engine.Request) { r.Prompt = []int32{1, 61} }, "prompt token 1 is id 61"},
		{"temperature", func(r *engine.Request) { r.Sampling.Temperature = -1 }, "temperature is -1"},
		{"not a number", func(r *engine.Request) { r.Sampling.TopP = float32(math.NaN()) }, "top p is NaN"},
		{"top p", func(r *engine.Request) { r.Sampling.TopP = 1.5 }, "top p is 1.5"},
		{"almost greedy", func(r *engine.Request) { r.Sampling.Temperature = 1e-9 }, "temperature is 1e-09"},
		{"infinite penalty", func(r *engine.Request) { r.Sampling.PresencePenalty = float32(math.Inf(1)) }, "presence penalty is +Inf"},
		{"bias of no id", func(r *engine.Request) { r.Sampling.LogitBias = map[int32]float32{99: 1} }, "logit bias of id 99"},
		{"endless bias", func(r *engine.Request) { r.Sampling.LogitBias = map[int32]float32{9: float32(math.Inf(-1))} }, "logit bias of id 9 is -Inf"},
		{"stop id", func(r *engine.Request) { r.Sampling.StopIDs = []int32{-4} }, "stop id is -4"},
		{"top k", func(r *engine.Request) { r.Sampling.TopK = -1 }, "top k is -1"},
		{"sample", func(r *engine.Request) { r.Sample = -1 }, "sample is -1"},
		{"negative id", func(r *engine.Request) { r.Prompt = []int32{-1} }, "prompt token 0 is id -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ok
			c.edit(&r)
			if !e.Room(&r) {
				t.Error("Room is false: the caller would wait for ever")
			}
			if err := e.Admit(&r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := e.Admit(&ok); err != nil {
		t.Error("a refused row left no room for a good one:", err)
	}
	if e.Room(&ok) {
		t.Error("room beside the only lane")
	}
}

func TestNonfiniteLogitsFailTheirRowAlone(t *testing.T) {
	m := small
	m.Logits = func(h uint64, row []float32) {
		enginetest.Model{}.Fill(h, row)
		if h%50 == 0 {
			row[13] = float32(math.NaN())
		}
	}
	rs := requests(40, engine.Sampling{})
	got := run(t, newEngine(t, m, engine.Config{Lanes: 4, Pages: 8, Chunk: 64, Context: 512}), rs)
	want := run(t, newEngine(t, small, engine.Config{Lanes: 4, Pages: 8, Chunk: 64, Context: 512}), rs)
	failed := 0
	for key, g := range got {
		if !errors.Is(g.Err, engine.ErrNonfinite) {
			if diff := cmp.Diff(want[key], g); diff != "" {
				t.Errorf("row %s (-plain +beside failures):\n%s", key, diff)
			}
			continue
		}
		failed++
		if w := want[key].Tokens[:len(g.Tokens)]; !slices.Equal(w, g.Tokens) || g.Finish != "" {
			t.Errorf("row %s: tokens before the failure %v, finish %q, want %v", key, g.Tokens, g.Finish, w)
		}
	}
	if failed == 0 {
		t.Error("no row met the planted NaN")
	}
}

func TestDeviceFailureEndsTheRun(t *testing.T) {
	e := newEngine(t, small, engine.Config{Lanes: 1, Pages: 1, Chunk: 8, Context: 64})
	if err := e.Admit(requests(1, engine.Sampling{})[0]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the pass's error", err)
	}
}

func TestDepthsAreRefusedByName(t *testing.T) {
	for depth, want := range map[engine.Depth]string{-2: "draft depth is -2: want 0 to 31, or Auto", 32: "draft depth is 32: want 0 to 31, or Auto", 31: ""} {
		cfg := engine.Config{Lanes: 1, Pages: 1, Chunk: 8, Context: 64, Depth: depth, Drafter: &draft.Copy{}}
		if _, err := engine.New(enginetest.Device{}, small, cfg); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}
