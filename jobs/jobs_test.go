package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestEffectiveJob pins what every key does, what a job takes from the defaults and how
// the canonical form is written.
func TestEffectiveJob(t *testing.T) {
	for _, name := range []string{"full", "minimal"} {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := Parse(name+".yaml", "base", source)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, j := range jobs {
				if err := json.Indent(&got, j.Canonical(), "", "  "); err != nil {
					t.Fatal(err)
				}
				run, err := json.MarshalIndent(map[string]any{"run": j.Run, "drafter": j.Drafter, "audit": j.Audit, "output": j.Output.Dir.File, "input": j.Input.Path.File, "digest": j.Digest()}, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("\n" + string(run) + "\n")
			}
			golden(t, filepath.Join("testdata", name+".golden"), got.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestDefaultsAreNotShared holds that one job's settings do not reach the next.
func TestDefaultsAreNotShared(t *testing.T) {
	jobs, err := Parse("j.yaml", ".", []byte(`
version: 1
defaults:
  model: m
  sampling: { logit_bias: { 1: 1 }, stop: [a] }
  prompt: { kwargs: { a: 1 } }
jobs:
  - { name: one, input: { path: x }, sampling: { logit_bias: { 2: 2 }, stop: [b] }, prompt: { kwargs: { a: 2, b: 3 } } }
  - { name: two, input: { path: x } }
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := jobs[1].Sampling.LogitBias; len(got) != 1 || got[1] != 1 {
		t.Errorf("logit_bias of the second job: %v", got)
	}
	if got := jobs[1].Prompt.Kwargs; len(got) != 1 || string(got[0].Value) != "1" {
		t.Errorf("kwargs of the second job: %v", got)
	}
	if got := jobs[0].Sampling.Stop; len(got) != 1 || got[0] != "b" {
		t.Errorf("stop of the first job: %v, want the list replaced", got)
	}
	if got := jobs[0].Sampling.LogitBias; len(got) != 2 {
		t.Errorf("logit_bias of the first job: %v, want the maps merged", got)
	}
}

// TestDigestSeesContentOnly holds which settings a resumed job may change.
func TestDigestSeesContentOnly(t *testing.T) {
	base := mustParse(t, job("lanes: 4\n    threads: 1"))
	same := mustParse(t, job("lanes: 8\n    threads: 2\n    chunk: 7\n    device: cpu\n    memory: { limit: 10% }\n    limits: { max_row_errors: 5 }\n    output: { dir: elsewhere }"))
	other := mustParse(t, job("sampling: { seed: 1 }"))
	if base.Digest() != same.Digest() {
		t.Errorf("digest changed with the way of working:\n%s\n%s", base.Canonical(), same.Canonical())
	}
	if base.Digest() == other.Digest() {
		t.Error("digest did not change with the seed")
	}
}

func mustParse(t *testing.T, source string) Job {
	t.Helper()
	jobs, err := Parse("j.yaml", ".", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return jobs[0]
}

// job is a job file whose only job has some more lines.
func job(more string) string {
	return "version: 1\njobs:\n  - name: a\n    model: m\n    input: { path: x }\n    " + more + "\n"
}

func withInput(more string) string {
	return "version: 1\njobs:\n  - { name: a, model: m, input: { path: x, " + more + " } }\n"
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"empty file", "", "j.yaml:1:1: file holds no job; it needs version and jobs"},
		{"only a comment", "# x\n", "j.yaml:1:1: file holds no job; it needs version and jobs"},
		{"no mapping", "- a\n", "j.yaml:1:1: is a list, want a mapping of keys to values"},
		{"no version", "jobs: []\n", "version is missing; write version: 1"},
		{"other version", "version: 2\njobs: []\n", "j.yaml:1:10: version: is 2, want 1 to 1"},
		{"no jobs", "version: 1\n", "jobs is missing"},
		{"no job", "version: 1\njobs: []\n", "j.yaml:2:7: jobs: holds no job"},
		{"syntax", "version: 1\njobs: [1,2\n", "j.yaml:2:7: sequence end token ']' not found"},
		{"second document", "version: 1\n---\nversion: 1\n", "j.yaml:2:1: second document; a job file has one"},
		{"duplicate key", job("kv: f32\n    kv: bf16"), `mapping key "kv" already defined at`},
		{"unknown key", job("temperature: 0"), "j.yaml:6:5: jobs[0].temperature: unknown key; known are arithmetic, audit, chunk,"},
		{"wrong case", job("Lanes: 3"), "j.yaml:6:5: jobs[0].Lanes: unknown key"},
		{"missing name", "version: 1\njobs:\n  - model: m\n    input: { path: x }\n", "jobs[0]: name is missing"},
		{"missing model", "version: 1\njobs:\n  - name: a\n    input: { path: x }\n", "jobs[0]: model is missing"},
		{"missing input", "version: 1\njobs:\n  - name: a\n    model: m\n", "jobs[0]: input.path is missing"},
		{"name with a path", "version: 1\njobs:\n  - name: ../up\n", `j.yaml:3:11: jobs[0].name: is "../up", want letters`},
		{"name twice", "version: 1\ndefaults: { model: m, input: { path: x } }\njobs:\n  - name: a\n  - name: A\n", `name "A" is used twice (case apart)`},
		{"name in defaults", "version: 1\ndefaults: { name: x }\njobs: []\n", "j.yaml:2:13: defaults.name: unknown key"},
		{"number as text", "version: 1\njobs:\n  - name: 12\n", `jobs[0].name: is a number, want text; put it in "quotes"`},
		{"text as number", job("lanes: \"3\""), "jobs[0].lanes: is text, want a whole number"},
		{"octal", job("lanes: 010"), "jobs[0].lanes: is 010, want a whole number in digits"},
		{"hexadecimal", job("lanes: 0x10"), "jobs[0].lanes: is 0x10, want a whole number in digits"},
		{"underscore", job("lanes: 1_0"), "jobs[0].lanes: is 1_0, want a whole number in digits"},
		{"exponent as integer", job("lanes: 1e1"), "jobs[0].lanes: is 1e1, want a whole number in digits"},
		{"zero lanes", job("lanes: 0"), "jobs[0].lanes: is 0, want 1 to 4096"},
		{"yes is no bool", job("prompt: { raw: yes }"), "jobs[0].prompt.raw: is text, want true or false"},
		{"empty value", job("sampling:"), "jobs[0].sampling: is empty, want a mapping"},
		{"unknown choice", job("kv: fp8"), `jobs[0].kv: is "fp8", want one of bf16, f32`},
		{"temperature below 0", job("sampling:\n      temperature: -1"), "j.yaml:7:20: jobs[0].sampling.temperature: is -1, want 0 to 100"},
		{"temperature not finite", job("sampling: { temperature: .inf }"), "sampling.temperature: is a number, want a number"},
		{"temperature too large for f32", job("sampling: { temperature: 1e39 }"), "sampling.temperature: is 1e39, want a number"},
		{"temperature nearly 0", job("sampling: { temperature: 1e-6 }"), "sampling.temperature: is 1e-06, want 0 (greedy) or at least 1e-05"},
		{"top_p 0", job("sampling: { top_p: 0 }"), "sampling.top_p: is 0, want"},
		{"repetition_penalty 0", job("sampling: { repetition_penalty: 0 }"), "sampling.repetition_penalty: is 0, want 0.01 to 100"},
		{"seed below 0", job("sampling: { seed: -1 }"), "sampling.seed: is -1, want 0 to 18446744073709551615 in digits"},
		{"empty stop", job("sampling: { stop: [\"\"] }"), "sampling.stop: string 0 has 0 bytes, want 1 to 1024"},
		{"stop of numbers", job("sampling: { stop: [5] }"), `sampling.stop[0]: is a number, want text; put it in "quotes"`},
		{"bias of no id", job("sampling: { logit_bias: { Yes: 1 } }"), `sampling.logit_bias.Yes: key is "Yes", want a token id in digits`},
		{"bias too large", job("sampling: { logit_bias: { 5: 101 } }"), "sampling.logit_bias: has 101 for id 5"},
		{"no size", withInput("max_line_bytes: 16 megs"), `input.max_line_bytes: "16 megs" is no size`},
		{"size too large", withInput("max_line_bytes: 99999999TiB"), `"99999999TiB" is no size`},
		{"share over 100", job("limits: { max_row_errors: 101% }"), `"101%" is no share from 0% to 100%`},
		{"drafter bits", job("drafter: { path: d, precision: q4 }"), `jobs[0].drafter.precision: is "q4", want one of checkpoint, q8`},
		{"drafter mode", job("drafter: { mode: fixed:32 }"), `jobs[0].drafter.mode: is "fixed:32", want auto, off or fixed:1 to fixed:31`},
		{"drafter number", job("drafter: 8"), "jobs[0].drafter: is a number, want a mapping"},
		{"copy as bool", job("drafter: { copy: true }"), "jobs[0].drafter.copy: is true or false, want text"},
		{"audit without share", job("audit: 5"), "jobs[0].audit: is a number, want text"},
		{"audit of rows", job("audit: { sample: \"3\" }"), `jobs[0].audit.sample: "3" is no share`},
		{"audit that goes on", job("audit: { sample: 1%, on_mismatch: warn }"), `audit.on_mismatch: is "warn", want one of stop`},
		{"no date", job("prompt: { date: 31.1.2026 }"), `prompt.date: is "31.1.2026", want a day as 2026-01-31`},
		{"alias", "version: 1\ndefaults: &x { kv: f32 }\njobs: *x\n", "jobs: is an anchor or alias, which are not supported; use defaults, want a list"},
		{"merge key", job("sampling: { <<: { n: 1 } }"), "jobs[0].sampling: merge keys are not supported; use defaults"},
		{"tag", job("kv: !!str f32"), "jobs[0].kv: is tagged, which is not supported, want text"},
		{"too deep", job("prompt: { kwargs: { a: " + strings.Repeat("[", 40) + " } }"), "nested deeper than 32"},
		{"block too deep", "version: 1\njobs:\n  " + strings.Repeat("- ", 40) + "\n", "nested deeper than 32"},
		{"too large", strings.Repeat("#\n", MaxBytes), "file has 524288 bytes, at most 262144"},
		{"long line", "# x\n# " + strings.Repeat("x", maxLine), "j.yaml:2:1: line has 4098 bytes, at most 4096; fold long text with | or >"},
		{"kwargs number", job("prompt: { kwargs: { a: 0x1F } }"), "prompt.kwargs.a: is 0x1F, want a number in plain decimal notation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("j.yaml", ".", []byte(c.source))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got:\n%v\nwant:\n%s", err, c.want)
			}
		})
	}
}

// TestNotSupportedYet holds that what the format foresees is refused by its own name.
func TestNotSupportedYet(t *testing.T) {
	for _, c := range []struct{ path, more string }{
		{"locked", "locked: [seed]"},
		{"sampling.logprobs", "sampling: { logprobs: 5 }"},
		{"limits.row_timeout", "limits: { row_timeout: 5 }"},
		{"limits.retries", "limits: { retries: 1 }"},
		{"output.order", "output: { order: input }"},
		{"output.rows", "output: { rows: jsonl.zst }"},
		{"output.parquet", "output: { parquet: {} }"},
		{"output.card", "output: { card: true }"},
	} {
		_, err := Parse("j.yaml", ".", []byte(job(c.more)))
		if want := "jobs[0]." + c.path + ": not supported yet"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", c.path, err, want)
		}
	}
}

func TestEveryErrorIsReported(t *testing.T) {
	_, err := Parse("j.yaml", ".", []byte(job("kv: x\n    lanes: 0\n    locked: y")))
	var list Errors
	if !errors.As(err, &list) || len(list) != 3 {
		t.Fatalf("got %v, want three errors", err)
	}
	want := "    6 |     kv: x\n      |         ^"
	if got := list[0].Excerpt(); got != want {
		t.Errorf("excerpt:\n%s\nwant:\n%s", got, want)
	}
}

func TestAmountOf(t *testing.T) {
	for _, c := range []struct {
		amount      Amount
		whole, want int64
		text        string
	}{
		{Amount{Percent: 70}, 1000, 700, "70%"},
		{Amount{Percent: 1.5}, 1000, 15, "1.5%"},
		{Amount{Count: 12}, 1000, 12, "12"},
		{Amount{}, 1000, 0, "0"},
	} {
		if got := c.amount.Of(c.whole); got != c.want || c.amount.String() != c.text {
			t.Errorf("%v of %d: got %d, want %d as %q", c.amount, c.whole, got, c.want, c.text)
		}
	}
}

// FuzzJobs holds that no input makes Parse panic or hang, and that what it accepts has a
// canonical form that is JSON and names every job safely.
func FuzzJobs(f *testing.F) {
	for _, name := range []string{"full.yaml", "minimal.yaml"} {
		source, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Add([]byte(job("sampling: { n: 2 }")))
	f.Add([]byte("version: 1\njobs:\n- ? a\n  : b"))
	f.Fuzz(func(t *testing.T, source []byte) {
		jobs, err := Parse("j.yaml", ".", source)
		if err != nil {
			for _, e := range err.(Errors) {
				_ = e.Excerpt()
			}
			return
		}
		for _, j := range jobs {
			if !json.Valid(j.Canonical()) {
				t.Fatalf("canonical form is no JSON: %s", j.Canonical())
			}
			if !safeName.MatchString(j.Name) || j.Sampling.Check() != nil {
				t.Fatalf("accepted an unsafe job: %s", j.Canonical())
			}
		}
	})
}
