package stages

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/engine"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const mixedInput = `{"custom_id":"first","messages":[{"role":"user","content":"hello"}]}
{"prompt":"two of me","n":2,"seed":9}

{"custom_id":"raw","url":"/v1/completions","body":{"prompt":"plain <&> text"}}
{"prompt_token_ids":[104,105]}
{"prompt":
{"custom_id":"first","prompt":"again"}
{"custom_id":"stopped","prompt":"abcXYZdef","stop":["Zd","nothing"]}
{"custom_id":"short","prompt":"abcdefghijkl","max_tokens":4}
{"custom_id":"long","prompt":"x","max_tokens":5000}`

// TestRowsAreGolden pins every byte of rows.jsonl and errors.jsonl.
func TestRowsAreGolden(t *testing.T) {
	s := newSetup(t, mixedInput, nil)
	report, err := Run(t.Context(), s)
	if err != nil || !report.Complete {
		t.Fatalf("got %+v, %v", report, err)
	}
	got := files(t, s)
	for _, name := range []string{rowsName, errorsName} {
		golden(t, filepath.Join("testdata", "mixed."+name), got[name])
	}
	golden(t, filepath.Join("testdata", "mixed.manifest.json"), stable(t, got[manifestName]))
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// stable is a manifest without its volatile part.
func stable(t *testing.T, manifest string) string {
	t.Helper()
	at := strings.Index(manifest, `  "volatile": {`)
	if at < 0 {
		t.Fatalf("manifest without a volatile part:\n%s", manifest)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(manifest), &m); err != nil {
		t.Fatal(err)
	}
	return manifest[:at]
}

// TestOrderAndLanesChangeNoByte runs the same rows with other numbers of lanes.
func TestOrderAndLanesChangeNoByte(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`{"custom_id":"id-%d","prompt":"question %d","n":%d}`, i, i, 1+i%3))
	}
	input := strings.Join(lines, "\n")
	var want map[string]string
	for _, lanes := range []int{1, 3, 64} {
		s := newSetup(t, input, nil)
		s.Engine = &fakeEngine{lanes: lanes, script: echo}
		report, err := Run(t.Context(), s)
		if err != nil || !report.Complete || report.Counts.Rows != 300 {
			t.Fatalf("%d lanes: %+v, %v", lanes, report, err)
		}
		got := files(t, s)
		got[manifestName] = stable(t, got[manifestName])
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d lanes (-1 lane +):\n%s", lanes, diff)
		}
	}
}

// TestWindowIsGivenBack runs more rows than the window between read and write holds at once.
func TestWindowIsGivenBack(t *testing.T) {
	const rows = windowBytes/rowBytes + 1000
	s := newSetup(t, strings.Repeat(`{"prompt":"q"}`+"\n", rows), nil)
	s.Engine = &fakeEngine{lanes: 64, script: echo}
	if report, err := Run(t.Context(), s); err != nil || report.Counts.Rows != rows {
		t.Errorf("got %+v, %v; want %d rows", report, err, rows)
	}
}

// TestRootIsOfTheDigestsInTheRows computes the job root again from the file alone.
func TestRootIsOfTheDigestsInTheRows(t *testing.T) {
	s := newSetup(t, mixedInput, nil)
	report, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var root row.Root
	for line := range strings.Lines(files(t, s)[rowsName]) {
		var r struct {
			ID       string `json:"custom_id"`
			Response struct {
				Body struct {
					Choices []struct {
						Receipt receipt `json:"tfbatch"`
					} `json:"choices"`
				} `json:"body"`
			} `json:"response"`
			Error *failure `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Error != nil {
			root.Add(row.ErrorDigest(r.ID, r.Error.Code))
		}
		for _, c := range r.Response.Body.Choices {
			root.Add(row.ChoiceDigest(r.ID, c.Receipt.Sample, c.Receipt.PromptSHA256, c.Receipt.TokenSHA256, c.Receipt.Finish))
		}
	}
	if root.Sum() != report.Root {
		t.Errorf("root of the rows is %v, the report says %v", root.Sum(), report.Root)
	}
}

// TestStopLeavesFinishedRows stops admission in the middle: what ran is in the journal, no
// file has a final name, and another run makes the rest.
func TestStopLeavesFinishedRows(t *testing.T) {
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf(`{"custom_id":"id-%d","prompt":"q"}`, i))
	}
	s := newSetup(t, strings.Join(lines, "\n"), nil)
	admit, stop := context.WithCancel(t.Context())
	defer stop()
	steps, late := 0, 0
	s.Admit = admit
	s.Engine = &fakeEngine{lanes: 4, script: echo, step: func() error {
		if steps++; steps == 100 {
			stop()
		}
		return nil
	}, refuses: func(*engine.Request) error {
		if admit.Err() != nil {
			late++
		}
		return nil
	}}
	report, err := Run(t.Context(), s)
	if err != nil || report.Complete {
		t.Fatalf("got %+v, %v; want an incomplete run without an error", report, err)
	}
	if late > 0 {
		t.Errorf("%d rows were started after the stop", late)
	}
	if report.Counts.Rows < 100 || report.Counts.Rows > 110 {
		t.Errorf("%d rows were written, want the 100 of as many steps and the few that ran", report.Counts.Rows)
	}
	if got := files(t, s); len(got) != 1 || got[journalName] == "" {
		t.Errorf("files %v, want the journal", got)
	}
	openFolder(t, s, FolderOptions{})
	if n, total := s.Folder.Done(); n != report.Counts.Rows || total != 5000 {
		t.Errorf("%d of %d rows found, the report says %d", n, total, report.Counts.Rows)
	}
	e := &fakeEngine{lanes: 4, script: echo}
	s.Admit, s.Engine = t.Context(), e
	again, err := Run(t.Context(), s)
	if err != nil || !again.Complete || again.Counts.Rows != 5000 || int64(e.admits) != 5000-report.Counts.Rows {
		t.Errorf("got %+v, %v with %d rows made", again, err, e.admits)
	}
}

// TestStopAfterTheLastLine stops when all of the input was read and some of it was not
// started: the job is not complete.
func TestStopAfterTheLastLine(t *testing.T) {
	s := newSetup(t, strings.Repeat(`{"prompt":"q"}`+"\n", 20), nil)
	admit, stop := context.WithCancel(t.Context())
	defer stop()
	s.Admit = admit
	s.Engine = &fakeEngine{lanes: 1, script: echo, step: func() error {
		for s.Meter.Read().Read < 20 { // the channels hold all 20
			runtime.Gosched()
		}
		stop()
		return nil
	}}
	report, err := Run(t.Context(), s)
	if err != nil || report.Complete || report.Counts.Rows == 20 {
		t.Fatalf("got %+v, %v; want an incomplete run without an error", report, err)
	}
	if _, ok := files(t, s)[rowsName]; ok {
		t.Errorf("%s is there although rows are missing", rowsName)
	}
}

// TestDeviceFailureKeepsWhatWasWritten fails a step in the middle. Rows that were on their
// way are lost, those that were written are not.
func TestDeviceFailureKeepsWhatWasWritten(t *testing.T) {
	broken := errors.New("device lost")
	s := newSetup(t, strings.Repeat(`{"prompt":"q"}`+"\n", 2000), nil)
	steps := 0
	s.Engine = &fakeEngine{lanes: 2, script: echo, step: func() error {
		if steps++; steps == 1000 {
			return broken
		}
		return nil
	}}
	report, err := Run(t.Context(), s)
	if !errors.Is(err, broken) || report.Complete {
		t.Fatalf("got %+v, %v; want %v", report, err, broken)
	}
	openFolder(t, s, FolderOptions{})
	if n, _ := s.Folder.Done(); n < 900 || n != report.Counts.Rows {
		t.Errorf("%d rows kept, the report says %d", n, report.Counts.Rows)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	s := newSetup(t, strings.Repeat(`{"prompt":"q"}`+"\n", 1000), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	steps := 0
	s.Engine = &fakeEngine{lanes: 2, script: echo, step: func() error {
		if steps++; steps == 10 {
			cancel()
		}
		return nil
	}}
	if _, err := Run(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestBadLinePolicies(t *testing.T) {
	const input = "{\"custom_id\":\"a\",\"prompt\":\"q\"}\nnonsense\n{\"custom_id\":\"a\",\"prompt\":\"q\"}\n"
	s := newSetup(t, input, func(j *jobs.Job) { j.Input.OnBadLine = jobs.OnBadLineStop })
	if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "line 2 of in.jsonl: invalid_json") {
		t.Errorf("got %v, want the run ended by line 2", err)
	}
	s = newSetup(t, input, func(j *jobs.Job) { j.Input.OnDuplicate = jobs.OnDuplicateSkip })
	report, err := Run(t.Context(), s)
	if err != nil || report.Counts.Rows != 2 || report.Counts.Skipped != 1 || report.Counts.Errors != 1 {
		t.Errorf("got %+v, %v; want two rows, one of them an error, and one skipped", report, err)
	}
	s = newSetup(t, input, func(j *jobs.Job) { j.Input.MaxRows = 1 })
	if report, err = Run(t.Context(), s); err != nil || !report.Complete || report.Counts.Rows != 1 {
		t.Errorf("got %+v, %v; want one row", report, err)
	}
}

// TestRowFailuresStayInTheirRow has the engine refuse and fail single samples.
func TestRowFailuresStayInTheirRow(t *testing.T) {
	input := `{"custom_id":"nan","prompt":"NAN","n":3}
{"custom_id":"big","prompt":"BIG"}
{"custom_id":"odd","prompt":"ODD"}
{"custom_id":"fine","prompt":"fine"}`
	s := newSetup(t, input, nil)
	prompt := func(q *engine.Request) string { return fakeTokenizer{}.DecodeVisible(q.Prompt) }
	s.Engine = &fakeEngine{lanes: 8,
		script: func(q *engine.Request) ([]int32, error) {
			switch {
			case strings.Contains(prompt(q), "NAN") && q.Sample > 0:
				return nil, fmt.Errorf("sample %d: %w", q.Sample, engine.ErrNonfinite)
			case strings.Contains(prompt(q), "ODD"):
				return nil, errors.New("out of luck")
			}
			return echo(q)
		},
		refuses: func(q *engine.Request) error {
			if strings.Contains(prompt(q), "BIG") {
				return errors.New("needs 9 pages of the 4 there are")
			}
			return nil
		}}
	report, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := map[row.Code]int64{row.NonfiniteLogits: 1, row.ContextLength: 1, row.Internal: 1}
	if diff := cmp.Diff(want, report.Counts.ByCode); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := files(t, s)[errorsName]; !strings.Contains(got, `"message":"sample 1: non-finite logits"`) {
		t.Errorf("the error of the first failed sample is not there:\n%s", got)
	}
}

// TestIdleEngineWithoutRoom holds that a device that never has room ends the run by name.
func TestIdleEngineWithoutRoom(t *testing.T) {
	s := newSetup(t, `{"prompt":"q"}`, nil)
	s.Engine = &fakeEngine{lanes: 0, script: echo}
	if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "engine is idle and has no room") {
		t.Errorf("got %v", err)
	}
}

func TestEmptyInput(t *testing.T) {
	s := newSetup(t, "\n \n", nil)
	report, err := Run(t.Context(), s)
	if err != nil || !report.Complete || report.Counts.Rows != 0 || report.Counts.Blank != 2 {
		t.Errorf("got %+v, %v", report, err)
	}
}
