package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/engine"
	"tfbatch/internal/row"
	"tfbatch/stages"
)

// reference is a greedy reply of the embedded model as Hugging Face transformers gave it in
// float64: gap is the distance of the two best logits at each step.
type reference struct {
	User      string    `json:"user"`
	PromptIDs []int32   `json:"prompt_ids"`
	OutputIDs []int32   `json:"output_ids"`
	Gap       []float64 `json:"top2_gap"`
	Text      string    `json:"text"`
}

// nearTie is a gap that bf16 keys and values may close.
const nearTie = 0.05

// TestRepliesAreThoseOfTransformers holds template, tokenizer, model and engine against the
// reference: prompt ids all equal, reply ids and text equal up to the first near tie.
func TestRepliesAreThoseOfTransformers(t *testing.T) {
	refs := readReferences(t)
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, log: slog.New(slog.DiscardHandler)}
	a.set.isa = "auto"
	p := prepareGolden(t, a, refs)
	rows := make([]*row.Row, len(refs))
	if _, err := stages.Take(t.Context(), &p.job, p.encoder, nil, func(r *row.Row) { rows[r.Index] = r }); err != nil {
		t.Fatal(err)
	}
	got := greedy(t, a, p, rows)
	for i, ref := range refs {
		if !slices.Equal(rows[i].Tokens, ref.PromptIDs) {
			t.Errorf("%q: prompt ids %v, want %v", ref.User, rows[i].Tokens, ref.PromptIDs)
			continue
		}
		sure := slices.IndexFunc(ref.Gap, func(g float64) bool { return g < nearTie })
		if sure < 0 {
			sure = len(ref.OutputIDs)
		}
		if len(got[i]) < sure || !slices.Equal(got[i][:sure], ref.OutputIDs[:sure]) {
			t.Errorf("%q: reply ids %v, want %v", ref.User, got[i], ref.OutputIDs[:sure])
		}
		if text := p.snap.stages.Tokenizer.DecodeVisible(got[i]); sure == len(ref.OutputIDs) && text != ref.Text {
			t.Errorf("%q: text %q, want %q", ref.User, text, ref.Text)
		}
	}
}

func readReferences(t *testing.T) []reference {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "gopher_greedy.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var refs []reference
	for line := range strings.Lines(string(data)) {
		var ref reference
		if err := json.Unmarshal([]byte(line), &ref); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	return refs
}

// prepareGolden makes a job of the references' prompts.
func prepareGolden(t *testing.T, a *app, refs []reference) *prepared {
	t.Helper()
	var input strings.Builder
	for _, ref := range refs {
		line, err := json.Marshal(map[string]string{"prompt": ref.User})
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"in.jsonl": input.String(),
		"job.yaml": "version: 1\njobs:\n  - { name: golden, model: builtin:gopher-15m, input: { path: in.jsonl }, lanes: 4 }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list, err := a.prepare(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// greedy runs the rows with as many tokens as the references have at most.
func greedy(t *testing.T, a *app, p *prepared, rows []*row.Row) [][]int32 {
	t.Helper()
	m, err := a.load(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.device.Close()
	eng, err := m.engine(p.size.engine)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]int32, len(rows))
	for next := 0; next < len(rows) || eng.Active() > 0; {
		for next < len(rows) {
			q := &engine.Request{Sample: next, Prompt: rows[next].Tokens, MaxTokens: 160}
			if !eng.Room(q) {
				break
			}
			if err := eng.Admit(q); err != nil {
				t.Fatal(err)
			}
			next++
		}
		results, err := eng.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			out[r.Request.Sample] = r.Tokens
		}
	}
	return out
}
