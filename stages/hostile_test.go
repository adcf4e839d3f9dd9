package stages

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// badLines is one line of each kind that must not end a job, with the code it gets; no code
// is a good row that only looks odd.
var badLines = []struct {
	line string
	code row.Code
}{
	{`{"prompt":"cut of`, row.InvalidJSON},
	{"{\"prompt\":\"\xff\xfe\"}", row.InvalidUTF8},
	{`{"prompt":"\ud83d"}`, row.InvalidUTF8},
	{"\ufeff{\"prompt\":\"a byte order mark in the middle\"}", row.InvalidJSON},
	{"{\"prompt\":\"carriage return\"}\r", ""},
	{"LONG", row.LineTooLong}, // written as 20 MB and less
	{`{"custom_id":"no-prompt-%d"}`, row.MissingField},
	{`{"messages":"text"}`, row.InvalidValue},
	{`{"prompt":7}`, row.InvalidValue},
	{`{"custom_id":"same","prompt":"x"}`, row.DuplicateID},
	{`{"prompt":"` + strings.Repeat("long ", 50) + `"}`, row.ContextLength},
	{`{"prompt":""}`, row.InvalidValue},
	{`{"prompt":"x","model":"gpt-4"}`, row.ModelNotFound},
	{`{"prompt":"x","Prompt":"y"}`, row.UnsupportedField},
	{`{"prompt":"x","prompt":"y"}`, row.InvalidJSON},
	{`{"prompt":"x","stream":true}`, row.UnsupportedField},
	{`["prompt"]`, row.InvalidJSON},
}

// writeHostile writes good rows with every kind of bad line among them, n rows in all, and
// returns how many errors of each code they are.
func writeHostile(w io.Writer, n int) map[row.Code]int64 {
	want := map[row.Code]int64{}
	megabytes := 20 // of the first line that is too long; the others are smaller
	fmt.Fprintln(w, `{"custom_id":"same","prompt":"first"}`)
	for i := 1; i < n; i++ {
		bad := badLines[i/2%len(badLines)]
		switch {
		case i%2 == 0:
			fmt.Fprintf(w, "{\"custom_id\":\"good-%d\",\"prompt\":\"question %d\"}\n\n", i, i)
			continue
		case bad.line == "LONG":
			io.WriteString(w, `{"prompt":"`)
			for range megabytes {
				io.WriteString(w, strings.Repeat("x", 1<<20))
			}
			fmt.Fprintln(w, `"}`)
			megabytes = 2
		default:
			fmt.Fprintln(w, strings.ReplaceAll(bad.line, "%d", fmt.Sprint(i)))
		}
		if bad.code != "" {
			want[bad.code]++
		}
	}
	return want
}

// TestHostileInput runs 2,000 rows with every kind of bad line: each becomes an error row
// with its code, the good ones are all answered, and memory stays flat.
func TestHostileInput(t *testing.T) {
	rows := int64(2000)
	if testing.Short() {
		rows = 200
	}
	const heapLimit = 48 << 20
	s := newSetup(t, "", func(j *jobs.Job) {
		j.Input.Path = jobs.Path{Name: jobs.StdinPath, File: jobs.StdinPath}
		j.Input.MaxLineBytes = 1 << 20
	})
	in, out := io.Pipe()
	var want map[row.Code]int64
	go func() {
		want = writeHostile(out, int(rows))
		out.Close()
	}()
	s.Stdin = in
	steps, peak := 0, uint64(0)
	s.Meter.Stepped = func(int) {
		if steps++; steps%20 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
	}
	report, err := Run(t.Context(), s)
	if err != nil || !report.Complete {
		t.Fatalf("got %+v, %v", report, err)
	}
	if diff := cmp.Diff(want, report.Counts.ByCode); diff != "" {
		t.Errorf("errors by code (-want +got):\n%s", diff)
	}
	var errors int64
	for _, n := range want {
		errors += n
	}
	if report.Counts.Rows != rows || report.Counts.Replies != rows-errors {
		t.Errorf("%d rows and %d replies, want %d and %d", report.Counts.Rows, report.Counts.Replies, rows, rows-errors)
	}
	got := files(t, s)
	if n := strings.Count(got[rowsName], "\n"); int64(n) != rows {
		t.Errorf("%d lines in %s, want %d", n, rowsName, rows)
	}
	if n := strings.Count(got[errorsName], "\n"); int64(n) != errors {
		t.Errorf("%d lines in %s, want %d", n, errorsName, errors)
	}
	if peak > heapLimit {
		t.Errorf("heap grew to %d MiB, limit %d", peak>>20, heapLimit>>20)
	}
	t.Logf("%d rows, %d errors, heap at most %d MiB", rows, errors, peak>>20)
}
