package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/engine"
	"tfbatch/jobs"
)

// fakeTokenizer has a token per byte, 256 for the beginning and 257 for the end.
type fakeTokenizer struct{}

const (
	fakeBOS   = 256
	fakeEOS   = 257
	fakeVocab = 258
)

func (fakeTokenizer) Encode(text string) []int32 {
	ids := []int32{}
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "<bos>"); ok {
			ids, text = append(ids, fakeBOS), rest
			continue
		}
		ids, text = append(ids, int32(text[0])), text[1:]
	}
	return ids
}

func (t fakeTokenizer) EncodeFramed(text string) []int32 {
	return append([]int32{fakeBOS}, t.Encode(text)...)
}

func (fakeTokenizer) DecodeVisible(ids []int32) string {
	var b []byte
	for _, id := range ids {
		if id < 256 {
			b = append(b, byte(id))
		}
	}
	return string(b)
}

type fakeStream struct{}

func (fakeStream) Push(id int32) string { return fakeTokenizer{}.DecodeVisible([]int32{id}) }

// fakeEngine replies to a prompt with what script says. It runs a few lanes and ends the
// youngest replies first, so that rows come out of order.
type fakeEngine struct {
	lanes  int
	script func(q *engine.Request) ([]int32, error)
	step   func() error // nil: nothing fails

	active  []*engine.Request
	admits  int
	refuses func(q *engine.Request) error
}

func (e *fakeEngine) Room(*engine.Request) bool { return len(e.active) < e.lanes }

func (e *fakeEngine) Admit(q *engine.Request) error {
	if e.refuses != nil {
		if err := e.refuses(q); err != nil {
			return err
		}
	}
	e.admits++
	e.active = append(e.active, q)
	return nil
}

func (e *fakeEngine) Step(ctx context.Context) ([]engine.Result, error) {
	if len(e.active) == 0 {
		return nil, errors.New("step of an idle engine")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.step != nil {
		if err := e.step(); err != nil {
			return nil, err
		}
	}
	last := len(e.active) - 1
	q := e.active[last]
	e.active = e.active[:last]
	return []engine.Result{e.reply(q)}, nil
}

// reply cuts the script as the engine would: at a stop, at the length.
func (e *fakeEngine) reply(q *engine.Request) engine.Result {
	ids, err := e.script(q)
	if err != nil {
		return engine.Result{Request: q, Err: err}
	}
	for i, id := range ids {
		if q.Stop != nil && q.Stop.Push(id) || id == fakeEOS {
			return engine.Result{Request: q, Tokens: ids[:i+1], Finish: engine.FinishStop}
		}
		if i+1 == q.MaxTokens {
			return engine.Result{Request: q, Tokens: ids[:i+1], Finish: engine.FinishLength}
		}
	}
	return engine.Result{Request: q, Tokens: ids, Finish: engine.FinishContext}
}

// echo answers with the end of what was asked, the sample and the seed.
func echo(q *engine.Request) ([]int32, error) {
	asked := strings.TrimSuffix(fakeTokenizer{}.DecodeVisible(q.Prompt), "[assistant]")
	text := fmt.Sprintf("%s %d/%d é.", asked[max(0, len(asked)-8):], q.Sample, q.Sampling.Seed)
	return append(fakeTokenizer{}.Encode(text), fakeEOS), nil
}

const fakeTemplate = `{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}`

// newSetup is a job over an input in a fresh folder.
func newSetup(t testing.TB, input string, change func(*jobs.Job)) *Setup {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte(input), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := jobs.Parse("j.yaml", dir, []byte(`
version: 1
jobs:
  - name: job
    model: models/tiny
    input: { path: in.jsonl }
    sampling: { max_tokens: 100, seed: 7 }
`))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&list[0])
	}
	s := &Setup{
		Job: list[0],
		Model: Model{
			Vocab: fakeVocab, Context: 200, BOS: fakeBOS,
			Tokenizer: fakeTokenizer{}, Stream: func() Stream { return fakeStream{} },
			Special: []SpecialToken{{"bos_token", "<bos>"}},
		},
		Engine: &fakeEngine{lanes: 4, script: echo},
		Admit:  t.Context(),
		Meter:  &Meter{},
	}
	openFolder(t, s, FolderOptions{})
	if s.Encoder, err = NewEncoder(&s.Job, &s.Model, Templates{Default: fakeTemplate}); err != nil {
		t.Fatal(err)
	}
	return s
}

// openFolder makes a setup ready for a run, after another one too.
func openFolder(t testing.TB, s *Setup, o FolderOptions) {
	t.Helper()
	closeFolder(t, s)
	var err error
	if s.Folder, err = OpenFolder(&s.Job, &s.Provenance, s.Stdin, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFolder(t, s) })
}

func closeFolder(t testing.TB, s *Setup) {
	t.Helper()
	if s.Folder == nil {
		return
	}
	if err := s.Folder.Close(); err != nil {
		t.Error(err)
	}
}

// files reads what a run left.
func files(t *testing.T, s *Setup) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(OutputDir(&s.Job))
	if errors.Is(err, os.ErrNotExist) {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		f, err := os.Open(filepath.Join(OutputDir(&s.Job), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}
