package stages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// look opens a view and returns its lines.
func look(t *testing.T, dir string, o Order) (*View, []string) {
	t.Helper()
	v, err := OpenView(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	var lines []string
	if err := v.Lines(o, func(line []byte) error { lines = append(lines, string(line)); return nil }); err != nil {
		t.Fatal(err)
	}
	return v, lines
}

func questions(n int) string {
	var b strings.Builder
	for i := range n {
		if i%5 == 4 {
			b.WriteString("nonsense\n")
			continue
		}
		fmt.Fprintf(&b, "{\"custom_id\":\"q%d\",\"prompt\":\"what is %d\"}\n", i, i)
	}
	return b.String()
}

// TestLookingDisturbsNothing looks at a job that was broken off in the middle of a record, at one that a run is at, and
// at the same one once it is complete.
func TestLookingDisturbsNothing(t *testing.T) {
	s := begun(t, questions(12), Provenance{Arithmetic: "fma-v1"})
	dir := OutputDir(&s.Job)
	tear := func() {
		f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString("\xf5tfb\x10\x00")
		f.Close()
	}
	tear()
	before := files(t, s)
	v, early := look(t, dir, InputOrder)
	if v.Record != nil || v.Job.Name != "job" || v.Arithmetic != "fma-v1" || int64(len(early)) != v.Counts.Rows || len(early) == 0 || len(v.Runs) != 1 {
		t.Errorf("%d rows of %+v", len(early), v)
	}
	if diff := cmp.Diff(before, files(t, s)); diff != "" {
		t.Errorf("a look has changed (-before +after):\n%s", diff)
	}

	openFolder(t, s, FolderOptions{}) // a run takes the lock, and cuts off what is torn
	tear()                            // and is writing a record
	open, again := look(t, dir, InputOrder)
	if !slices.Equal(early, again) {
		t.Errorf("rows of a running job are %q, want %q", again, early)
	}
	closeFolder(t, s)
	openFolder(t, s, FolderOptions{})
	if report, err := Run(t.Context(), s); err != nil || !report.Complete {
		t.Fatalf("%+v, %v", report, err)
	}
	if err := open.Lines(InputOrder, func([]byte) error { return nil }); err != nil {
		t.Errorf("a view that was open when the job ended: %v", err)
	}
	closeFolder(t, s)

	v, whole := look(t, dir, InputOrder)
	if v.Record == nil || v.Counts.Rows != 12 || v.Counts.Errors != 2 || strings.Join(whole, "") != files(t, s)[rowsName] {
		t.Errorf("rows of a complete job are %q, %+v", whole, v.Counts)
	}
	for _, line := range early {
		if !slices.Contains(whole, line) {
			t.Errorf("no row of the complete job is %q", line)
		}
	}
	for i, line := range whole {
		r, err := ParseLine([]byte(line))
		if err != nil || r.Index != int64(i) || (r.Error != "") != (i%5 == 4) || (r.Error == "") != (len(r.Replies) == 1) || (r.Error != "") != (r.Message != "") {
			t.Errorf("line %d is read as %+v, %v", i, r, err)
		}
	}
}

func TestRowsAsTheyEnded(t *testing.T) {
	s := begun(t, questions(12), Provenance{})
	dir := OutputDir(&s.Job)
	_, input := look(t, dir, InputOrder)
	_, ended := look(t, dir, EndedOrder)
	var at []int
	journal := files(t, s)[journalName]
	for _, line := range ended {
		at = append(at, strings.Index(journal, line))
	}
	if !slices.IsSorted(at) || slices.Equal(input, ended) || len(at) != len(input) {
		t.Errorf("rows lie at %d in the journal; by input %q", at, input)
	}
	slices.Sort(input)
	slices.Sort(ended)
	if !slices.Equal(input, ended) {
		t.Errorf("rows as they ended are %q, by input %q", ended, input)
	}
}

func TestLookingAtOtherThings(t *testing.T) {
	dir := t.TempDir()
	if v, lines := look(t, dir, InputOrder); v.Arithmetic != "" || v.Counts.Rows != 0 || len(lines) != 0 {
		t.Errorf("an empty folder is %+v", v)
	}
	if _, err := OpenView(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	file := filepath.Join(dir, "file")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(file, "x")
	if _, err := OpenView(file); !errors.Is(err, ErrNoFolder) {
		t.Errorf("a file: %v", err)
	}
	put(filepath.Join(dir, journalName), "x")
	if _, err := OpenView(dir); !errors.Is(err, ErrRecord) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no journal: %v", err)
	}
	put(filepath.Join(dir, manifestName), "{}")
	if _, err := OpenView(dir); !errors.Is(err, ErrRecord) {
		t.Errorf("no manifest: %v", err)
	}

	s := begun(t, questions(12), Provenance{})
	_, whole := look(t, OutputDir(&s.Job), EndedOrder)
	path := filepath.Join(OutputDir(&s.Job), journalName)
	text := files(t, s)[journalName]
	put(path, strings.Replace(text, `"custom_id":"`, `"custom_id":!`, 1))
	if _, left := look(t, OutputDir(&s.Job), EndedOrder); !slices.Equal(left, whole[1:]) {
		t.Errorf("behind a damaged record there are %d rows of %d", len(left), len(whole))
	}
}
