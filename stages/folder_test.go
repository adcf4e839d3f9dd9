package stages

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/semaphore"

	"tfbatch/internal/engine"
	"tfbatch/internal/journal"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// finished is a job that has run to its end.
func finished(t *testing.T, input string, p Provenance) *Setup {
	t.Helper()
	s := newSetup(t, input, nil)
	s.Provenance = p
	openFolder(t, s, FolderOptions{})
	if report, err := Run(t.Context(), s); err != nil || !report.Complete {
		t.Fatalf("got %+v, %v", report, err)
	}
	closeFolder(t, s)
	return s
}

// begun is a job that was broken off behind its first rows.
func begun(t *testing.T, input string, p Provenance) *Setup {
	t.Helper()
	s := newSetup(t, input, nil)
	s.Provenance = p
	openFolder(t, s, FolderOptions{})
	cut(t, s)
	return s
}

// cut breaks a run off.
func cut(t *testing.T, s *Setup) {
	t.Helper()
	steps := 0
	s.Engine = &fakeEngine{lanes: 2, script: echo, step: func() error {
		if steps++; steps < 5 {
			return nil
		}
		for s.Meter.Read().Rows == 0 {
			runtime.Gosched()
		}
		return errors.New("power cut")
	}}
	if report, err := Run(t.Context(), s); err == nil || report.Complete || report.Counts.Rows == 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	closeFolder(t, s)
	s.Engine = &fakeEngine{lanes: 3, script: echo}
}

// TestFinishedJobIsLeftAlone opens a finished job again: it is complete, and no byte of it
// changes until it is told to begin anew.
func TestFinishedJobIsLeftAlone(t *testing.T) {
	s := finished(t, `{"prompt":"q"}`, Provenance{})
	before := files(t, s)
	if _, ok := before[journalName]; ok || len(before) != 3 {
		t.Errorf("files %v, want rows, errors and manifest", before)
	}
	openFolder(t, s, FolderOptions{RetryErrors: true}) // there are none
	if !s.Folder.Complete() {
		t.Fatal("a finished job is not complete")
	}
	report, err := s.Folder.Finished(nil)
	if err != nil || !report.Complete || report.Counts.Rows != 1 || report.Root == (row.Digest{}) {
		t.Errorf("got %+v, %v", report, err)
	}
	if diff := cmp.Diff(before, files(t, s)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	openFolder(t, s, FolderOptions{Overwrite: true})
	if report, err := Run(t.Context(), s); err != nil || !report.Complete {
		t.Errorf("overwrite: %+v, %v", report, err)
	}
}

// TestChangedJobIsRefused changes one thing at a time, in a job that was begun and in one that
// is finished: each is named with what it was and is, and no byte changes.
func TestChangedJobIsRefused(t *testing.T) {
	sum := func(s string) row.Digest { return row.PromptHash([]int32{int32(s[0])}) }
	shards := func(s string) []FileDigest { return []FileDigest{{"model.safetensors", 9, sum(s)}} }
	template := sum("t")
	for name, change := range map[string]struct {
		do   func(s *Setup)
		want string
	}{
		"seed":        {func(s *Setup) { s.Job.Sampling.Seed = 8 }, "sampling.seed: 7 -> 8"},
		"system":      {func(s *Setup) { s.Job.Prompt.System = "be brief" }, "prompt.system:  -> be brief"},
		"stop":        {func(s *Setup) { s.Job.Sampling.Stop = []string{"x"} }, "sampling.stop[0]: none -> x"},
		"limit":       {func(s *Setup) { s.Job.Input.MaxRows = 3 }, "input.max_rows: 0 -> 3"},
		"arithmetic":  {func(s *Setup) { s.Provenance.Arithmetic = "fma-v2" }, "arithmetic: fma-v1 -> fma-v2"},
		"tokenizer":   {func(s *Setup) { s.Provenance.Model.Tokenizer = sum("u") }, "model.tokenizer_sha256: " + sum("k").String() + " -> " + sum("u").String()},
		"template":    {func(s *Setup) { s.Provenance.Model.Template = &template }, "model.template_sha256: <nil> -> " + template.String()},
		"weights":     {func(s *Setup) { s.Provenance.Model.Shards = shards("x") }, "model.shards[0].sha256: " + sum("w").String() + " -> " + sum("x").String()},
		"input":       {func(s *Setup) { os.WriteFile(s.Job.Input.Path.File, []byte("{}\n"), 0o644) }, "input_sha256: "},
		"no input":    {func(s *Setup) { os.Remove(s.Job.Input.Path.File) }, "input: in.jsonl -> open "},
		"two of them": {func(s *Setup) { s.Job.Sampling.Seed, s.Job.Sampling.TopK = 9, 1 }, "sampling.seed: 7 -> 9; sampling.top_k: 0 -> 1"},
	} {
		for state, start := range map[string]func(*testing.T, string, Provenance) *Setup{"begun": begun, "finished": finished} {
			t.Run(state+"/"+name, func(t *testing.T) {
				s := provenStart(t, start, shards("w"), sum("k"))
				before := files(t, s)
				change.do(s)
				var err error
				if s.Folder, err = OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{}); err == nil {
					t.Fatal("the folder was opened")
				}
				var changed *Changed
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), change.want) {
					t.Errorf("got %v, want %s", err, change.want)
				}
				if diff := cmp.Diff(before, files(t, s)); diff != "" {
					t.Errorf("files changed:\n%s", diff)
				}
			})
		}
	}
}

// provenStart starts a job with a provenance.
func provenStart(t *testing.T, start func(*testing.T, string, Provenance) *Setup, shards []FileDigest, tokenizer row.Digest) *Setup {
	t.Helper()
	p := Provenance{Version: "v1", Arithmetic: "fma-v1", Model: ModelFiles{Shards: shards, Tokenizer: tokenizer}}
	return start(t, strings.Repeat(`{"prompt":"q"}`+"\n", 12), p)
}

// TestOtherVersionGoesOn holds that neither the version nor the shards not being known yet
// are in the way.
func TestOtherVersionGoesOn(t *testing.T) {
	s := provenStart(t, begun, []FileDigest{{Name: "m"}}, row.Digest{})
	shards := s.Provenance.Model.Shards
	s.Provenance.Version, s.Provenance.Model.Shards = "v2", nil
	openFolder(t, s, FolderOptions{})
	s.Provenance.Model.Shards = shards
	if report, err := Run(t.Context(), s); err != nil || !report.Complete {
		t.Fatalf("got %+v, %v", report, err)
	}
	if m := files(t, s)[manifestName]; strings.Count(m, `"version": "v1"`) != 1 || strings.Count(m, `"version": "v2"`) != 1 {
		t.Errorf("the manifest does not have both versions:\n%s", m)
	}
}

// TestForeignFilesAreNotTouched holds that files which no run here has made are a refusal.
func TestForeignFilesAreNotTouched(t *testing.T) {
	for name, text := range map[string]string{rowsName: "{}\n", errorsName: "", manifestName: "{}", journalName: "12:00 started\n"} {
		s := newSetup(t, `{"prompt":"q"}`, nil)
		closeFolder(t, s)
		path := filepath.Join(OutputDir(&s.Job), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{})
		if !errors.Is(err, ErrOutputExists) && !errors.Is(err, journal.ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := files(t, s); len(got) != 1 || got[name] != text {
			t.Errorf("%s: files %v", name, got)
		}
	}
}

func TestSecondRunIsRefused(t *testing.T) {
	s := newSetup(t, `{"prompt":"q"}`, nil)
	if _, err := OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{Overwrite: true}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("got %v, want %v", err, journal.ErrLocked)
	}
}

// TestRetryErrors makes the rows again that failed, and no other.
func TestRetryErrors(t *testing.T) {
	input := "{\"custom_id\":\"a\",\"prompt\":\"fine\"}\n{\"custom_id\":\"b\",\"prompt\":\"ODD\"}\nnonsense\n{\"custom_id\":\"c\",\"prompt\":\"ODD\"}\n"
	want := files(t, finished(t, input, Provenance{}))

	s := newSetup(t, input, nil)
	odd := func(q *engine.Request) ([]int32, error) {
		if strings.Contains(fakeTokenizer{}.DecodeVisible(q.Prompt), "ODD") {
			return nil, errors.New("out of luck")
		}
		return echo(q)
	}
	s.Engine = &fakeEngine{lanes: 2, script: odd}
	if report, err := Run(t.Context(), s); err != nil || report.Counts.Errors != 3 {
		t.Fatalf("got %+v, %v", report, err)
	}
	openFolder(t, s, FolderOptions{})
	if !s.Folder.Complete() {
		t.Error("a finished job with error rows is not complete")
	}
	openFolder(t, s, FolderOptions{RetryErrors: true})
	if n, _ := s.Folder.Done(); s.Folder.Complete() || n != 1 {
		t.Fatalf("%d rows are done, complete %v; want 1", n, s.Folder.Complete())
	}
	e := &fakeEngine{lanes: 2, script: echo}
	s.Engine = e
	if report, err := Run(t.Context(), s); err != nil || !report.Complete || report.Counts.Errors != 1 || e.admits != 2 {
		t.Fatalf("got %+v, %v with %d rows made", report, err, e.admits)
	}
	same(t, want, files(t, s))

	if err := os.Remove(filepath.Join(OutputDir(&s.Job), journalName)); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, s)
	if _, err := OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{RetryErrors: true}); !errors.Is(err, ErrNoJournal) {
		t.Errorf("got %v, want %v", err, ErrNoJournal)
	}
}

// same compares the final files of two runs, apart from what is volatile in the manifest.
func same(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, name := range []string{rowsName, errorsName, manifestName} {
		w, g := want[name], got[name]
		if name == manifestName {
			w, g = stable(t, w), stable(t, g)
		}
		if w != g {
			t.Fatalf("%s differs (-want +got):\n%s", name, cmp.Diff(w, g))
		}
	}
}

// TestAuditGoesOn breaks a run off with a difference found: the next run finds it again, for
// no row that an audit has not passed counts as done.
func TestAuditGoesOn(t *testing.T) {
	s := newSetup(t, prompts(20), nil)
	wrong := func(q *engine.Request) ([]int32, error) {
		ids, err := echo(q)
		if q.Key == "r7" && q.Sample == 1 {
			ids = slices.Clone(ids)
			ids[3] = 'X'
		}
		return ids, err
	}
	for range 2 {
		newAudit(s, 100)
		s.Engine = &fakeEngine{lanes: 4, script: wrong}
		var d *Difference
		if _, err := Run(t.Context(), s); !errors.As(err, &d) {
			t.Fatalf("got %v, want a difference", err)
		}
		openFolder(t, s, FolderOptions{})
	}
	newAudit(s, 100)
	e := &fakeEngine{lanes: 4, script: echo}
	s.Engine = e
	if report, err := Run(t.Context(), s); err != nil || !report.Complete || e.admits == 40 || report.Counts.Rows != 20 {
		t.Errorf("got %+v, %v, with %d of 40 replies made again", report, err, e.admits)
	}
}

// TestChangedLineOfStdin gives other lines to a job that reads standard input.
func TestChangedLineOfStdin(t *testing.T) {
	s := newSetup(t, "", func(j *jobs.Job) {
		j.Input.Path = jobs.Path{Name: jobs.StdinPath, File: jobs.StdinPath}
	})
	s.Stdin = strings.NewReader(prompts(20))
	cut(t, s)
	for _, c := range []struct{ input, want string }{
		{strings.ReplaceAll(prompts(20), "q", "Q"), " of -: is not the line that it was"},
		{"", "input -: more than "},
		{prompts(20), ""},
	} {
		openFolder(t, s, FolderOptions{})
		s.Stdin = strings.NewReader(c.input)
		report, err := Run(t.Context(), s)
		var changed *Changed
		if c.want == "" && (err != nil || !report.Complete) || c.want != "" && (!errors.As(err, &changed) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %+v, %v; want %q", report, err, c.want)
		}
	}
}

// TestNoRowBeforeTheComparison holds that rows of an input which may be another wait until
// all that is done was compared.
func TestNoRowBeforeTheComparison(t *testing.T) {
	done := &earlierRows{places: []donePlace{{}, {Place: journal.Place{Bytes: 1}, sum: lineSum{7}}}}
	r := &reader{job: &jobs.Job{}, done: done, hold: true, window: semaphore.NewWeighted(9)}
	out := make(chan *row.Row, 9)
	r.rows = 1
	if err := r.pass(t.Context(), out, &row.Row{Index: 0}); err != nil || len(out) != 0 {
		t.Fatalf("row 0: %v, %d rows sent before row 1 was compared", err, len(out))
	}
	r.rows = 2
	if err := r.pass(t.Context(), out, &row.Row{Index: 1}); err == nil || len(out) != 0 {
		t.Fatalf("row 1 of another line: %v, %d rows sent", err, len(out))
	}
	if err := r.pass(t.Context(), out, &row.Row{Index: 1, Sum: lineSum{7}}); err != nil || len(out) != 1 || (<-out).Index != 0 {
		t.Fatalf("row 1: %v", err)
	}
}

// TestInputThatGrows holds that a job is not finished over an input that changed under it.
func TestInputThatGrows(t *testing.T) {
	s := newSetup(t, prompts(2), nil)
	if err := os.WriteFile(s.Job.Input.Path.File, []byte(prompts(3)), 0o644); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), s)
	var changed *Changed
	if !errors.As(err, &changed) || report.Complete || !strings.Contains(err.Error(), "while it was read") {
		t.Errorf("got %+v, %v", report, err)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte{})
	one := factsOf(&row.Row{Index: 300, ID: "a", Choices: []row.Choice{{Finish: row.Length}}})
	f.Add(append(one.append(nil), "{}\n"...))
	failed := factsOf(&row.Row{Err: &row.Error{Code: row.Internal}})
	f.Add(failed.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		facts, line, err := parseFacts(data)
		if err != nil {
			return
		}
		again, rest, err := parseFacts(append(facts.append(nil), line...))
		if err != nil || !cmp.Equal(again, facts, cmp.AllowUnexported(facts.types()...)) || string(rest) != string(line) {
			t.Errorf("%+v is read back as %+v, %v", facts, again, err)
		}
	})
}

// types lets go-cmp look into facts.
func (f facts) types() []any { return []any{f, replyFacts{}} }

// FuzzRecords takes records of any content for a journal that a run left.
func FuzzRecords(f *testing.F) {
	f.Add(byte(rowRecord), []byte{1}, byte(auditRecord), []byte{1, 2})
	one := factsOf(&row.Row{Index: 1, Err: &row.Error{Code: row.Internal}})
	f.Add(byte(rowRecord), one.append(nil), byte(rowRecord), one.append(nil))
	f.Add(byte(sessionRecord), []byte("{}"), byte(identityRecord), []byte("{}"))
	f.Fuzz(func(t *testing.T, kind1 byte, payload1 []byte, kind2 byte, payload2 []byte) {
		s := newSetup(t, prompts(2), nil)
		closeFolder(t, s)
		d := newMemDisk()
		file := &memFile{}
		d.names[filepath.Join(OutputDir(&s.Job), journalName)] = file
		log, err := journal.Create(&memOpen{disk: d, file: file})
		if err != nil {
			t.Fatal(err)
		}
		id := identity{Job: s.Job.Canonical()}
		for _, r := range []struct {
			kind    byte
			payload []byte
		}{{identityRecord, encodeJSON(id)}, {kind1, payload1}, {kind2, payload2}} {
			if _, err := log.Append(r.kind, r.payload); err != nil {
				t.Fatal(err)
			}
		}
		before := string(file.data)
		folder, err := OpenFolder(&s.Job, &s.Provenance, nil, FolderOptions{Disk: d})
		if err == nil {
			if n, _ := folder.Done(); n > 2 {
				t.Errorf("%d rows of two records", n)
			}
			err = folder.Close()
			if err != nil {
				t.Error(err)
			}
		}
		if string(file.data) != before {
			t.Error("the journal was changed")
		}
	})
}
