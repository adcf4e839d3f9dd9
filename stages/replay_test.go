package stages

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/engine"
	"tfbatch/jobs"
)

// record runs a job and opens what it left.
func record(t *testing.T, input string, script func(*engine.Request) ([]int32, error)) (*Setup, *Record) {
	t.Helper()
	s := newSetup(t, input, nil)
	s.Engine = &fakeEngine{lanes: 4, script: script}
	if report, err := Run(t.Context(), s); err != nil || !report.Complete {
		t.Fatalf("%+v, %v", report, err)
	}
	rec, err := OpenRecord(OutputDir(&s.Job))
	if err != nil {
		t.Fatal(err)
	}
	return s, rec
}

// replay makes the record's rows again on an honest engine.
func replay(t *testing.T, s *Setup, rec *Record, sample Sample) (*Replayed, error) {
	t.Helper()
	h, err := rec.CheckHashes(t.Context())
	if err != nil || len(h.Problems) > 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	s.Model.EOS = []int32{fakeEOS}
	p := &Replay{
		Record: rec, Hashes: h, Sample: sample, Model: s.Model, Encoder: s.Encoder, Engine: &fakeEngine{lanes: 1, script: echo},
		Margin: func(_ context.Context, ids []int32) (float32, error) { return float32(len(ids)), nil },
	}
	return p.Run(t.Context())
}

func TestReplayOfEqualRows(t *testing.T) {
	s, rec := record(t, mixedInput+prompts(300), echo)
	for _, c := range []struct {
		sample Sample
		least  int64
		most   int64
	}{{Sample{}, 300, 320}, {Sample{Rows: 7}, 7, 7}, {Sample{Percent: 20}, 40, 90}, {Sample{Percent: 1e-9}, 1, 1}} {
		out, err := replay(t, s, rec, c.sample)
		if err != nil || out.Rows < c.least || out.Rows > c.most || out.Difference != nil {
			t.Errorf("%+v: got %+v, %v", c.sample, out, err)
		}
	}
}

// TestReplayNamesTheFirstDifference plants wrong tokens in two rows. The recorded id is told
// where the text gives it away, and said to be unknown where not.
func TestReplayNamesTheFirstDifference(t *testing.T) {
	for _, c := range []struct {
		name string
		id   int32
		told int32
	}{{"a letter", 'X', 'X'}, {"an invisible token", fakeBOS, unknownToken}} {
		t.Run(c.name, func(t *testing.T) {
			s, rec := record(t, prompts(20), func(q *engine.Request) ([]int32, error) {
				ids, err := echo(q)
				if q.Key == "r7" && q.Sample == 1 || q.Key == "r12" {
					ids = slices.Clone(ids)
					ids[3] = c.id
				}
				return ids, err
			})
			out, err := replay(t, s, rec, Sample{})
			var d *Difference
			if !errors.As(err, &d) || out.Difference != d {
				t.Fatalf("got %+v, %v", out, err)
			}
			if d.Row != 7 || d.ID != "r7" || d.Sample != 1 || d.Position != 3 || d.Recorded != c.told || d.Plain < 0 || d.Margin == 0 {
				t.Errorf("got %+v", *d)
			}
		})
	}
}

// TestRecordNotComparable changes one thing of a record at a time.
func TestRecordNotComparable(t *testing.T) {
	edit := func(name, old, new string) func(*Record) error {
		return func(r *Record) error {
			path := filepath.Join(r.Dir, name)
			data, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(data), old) {
				return errors.Join(err, errors.New("nothing to change"))
			}
			return os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Record) error
		want   string
	}{
		{"no manifest", func(r *Record) error { return os.Remove(filepath.Join(r.Dir, manifestName)) }, "no such file"},
		{"no rows", func(r *Record) error { return os.Remove(filepath.Join(r.Dir, rowsName)) }, "no such file"},
		{"no errors", func(r *Record) error { return os.Remove(filepath.Join(r.Dir, errorsName)) }, "no such file"},
		{"text", edit(rowsName, "q1", "q9"), "rows.jsonl has"},
		{"error text", edit(errorsName, "prompt", "prumpt"), "errors.jsonl has"},
		{"format", edit(manifestName, manifestFormat, "tfbatch/manifest/9"), "format is"},
		{"job", edit(manifestName, `"seed": 7`, `"seed": 8`), "job_sha256 is"},
		{"job key", edit(manifestName, `"seed": 7`, `"sead": 7`), "unknown field"},
		{"root", edit(manifestName, `"job_root": "`, `"job_root": "0`), "digest"},
		{"counts", edit(manifestName, `"replies": 10`, `"replies": 11`), "counts of the rows"},
		{"files", edit(manifestName, `"name": "errors.jsonl"`, `"name": "other.jsonl"`), "the manifest lists 2 files"},
		{"no JSON", edit(manifestName, "{", "["), "invalid character"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, rec := record(t, prompts(5)+`{"prompt":5}`, echo)
			if err := c.change(rec); err != nil {
				t.Fatal(err)
			}
			got := problems(t, OutputDir(&s.Job))
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %s", got, c.want)
			}
		})
	}
}

// problems is what is wrong with a record, whoever finds it.
func problems(t *testing.T, dir string) string {
	t.Helper()
	rec, err := OpenRecord(dir)
	if err != nil {
		if !errors.Is(err, ErrRecord) {
			t.Errorf("%v is not marked as not comparable", err)
		}
		return err.Error()
	}
	h, err := rec.CheckHashes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(h.Problems, "; ")
}

// TestReplayOfAnotherInput holds that a changed input is found before a row is made.
func TestReplayOfAnotherInput(t *testing.T) {
	s, rec := record(t, prompts(5), echo)
	if err := os.WriteFile(s.Job.Input.Path.File, []byte(prompts(4)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := replay(t, s, rec, Sample{})
	if !errors.Is(err, ErrRecord) || out.Rows != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestSameModel(t *testing.T) {
	_, rec := record(t, prompts(1), echo)
	m := rec.manifest.Model
	if err := rec.SameModel(m); err != nil {
		t.Error(err)
	}
	changed := m
	changed.Tokenizer[0]++
	if err := rec.SameModel(changed); !errors.Is(err, ErrRecord) {
		t.Errorf("another tokenizer: %v", err)
	}
	changed = m
	changed.Shards = []FileDigest{{Name: "x"}}
	if err := rec.SameModel(changed); !errors.Is(err, ErrRecord) {
		t.Errorf("another shard: %v", err)
	}
}

func TestParseSample(t *testing.T) {
	for text, want := range map[string]Sample{"all": {}, "5": {Rows: 5}, "0.5%": {Percent: 0.5}, "100%": {Percent: 100}} {
		if got, err := ParseSample(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "101%", "x", "NaN%", "1.5"} {
		if got, err := ParseSample(text); err == nil {
			t.Errorf("%q was accepted as %+v", text, got)
		}
	}
}

func FuzzManifest(f *testing.F) {
	job, err := jobs.Parse("j.yaml", ".", []byte("version: 1\njobs:\n  - { name: a, model: m, input: { path: x } }\n"))
	if err != nil {
		f.Fatal(err)
	}
	data, err := json.Marshal(manifest{Format: manifestFormat, Job: job[0].Canonical(), JobSHA256: job[0].Digest()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &Record{Dir: "x"}
		if err := r.parse(data); err == nil && r.Job.Name == "" {
			t.Errorf("%q has a job without a name", data)
		}
	})
}
