package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func options(f Format, rows int64) Options {
	return Options{Format: f, Split: "train", Rows: rows, ShardRows: 4, GroupRows: 3, Facts: map[string]string{"tfbatch.job_root": "00"}}
}

// rows are a chat with its ids, a text without, and a failure, in turn.
func rows(n int) []Row {
	var list []Row
	for i := range n {
		r := Row{CustomID: fmt.Sprintf("row %d", i), Row: int64(i), Seed: 1<<64 - 1}
		switch i % 3 {
		case 0:
			r.Messages, r.PromptIDs, r.TokenIDs = []Message{{"system", "be | brief"}, {"user", "é\n"}}, []int32{1, 2}, []int32{3}
			r.Completion, r.FinishReason, r.TokenSHA256, r.PromptSHA256 = "yes", "stop", "aa", "bb"
		case 1:
			r.Prompt, r.Completion, r.FinishReason, r.TokenSHA256, r.PromptSHA256 = "p", "", "length", "cc", "dd"
		case 2:
			r.Prompt, r.ErrorCode = "p", "invalid_value"
		}
		list = append(list, r)
	}
	return list
}

func fill(t *testing.T, o Options, list []Row) (string, *Set) {
	t.Helper()
	dir := t.TempDir()
	s, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := s.Write(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, s
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestParquetHoldsTheRows(t *testing.T) {
	list := rows(9)
	dir, s := fill(t, options(Parquet, 9), list)
	var got []record
	for _, name := range names(t, filepath.Join(dir, "data")) {
		shard, err := parquet.ReadFile[record](filepath.Join(dir, "data", name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, shard...)
	}
	var want []record
	for i := range list {
		want = append(want, newRecord(&list[i]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s.Duplicates() != 4 {
		t.Errorf("%d duplicates, want 4: three replies of one kind, three of another", s.Duplicates())
	}
}

func TestColumnsAreThoseOfParquet(t *testing.T) {
	var in []string
	for _, f := range parquet.SchemaOf(record{}).Fields() {
		in = append(in, fmt.Sprint(f.Name(), f.Optional()))
	}
	var want []string
	for _, c := range columns {
		want = append(want, fmt.Sprint(c.Name, c.Nullable))
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Error(diff)
	}
}

func TestArrowHoldsTheRows(t *testing.T) {
	dir, _ := fill(t, options(Arrow, 5), rows(5))
	f, err := os.Open(filepath.Join(dir, "data", "train-00000-of-00002.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if root, _ := in.Schema().Metadata().GetValue("tfbatch.job_root"); root != "00" || in.NumRecords() != 2 {
		t.Fatalf("job root %q, %d batches, want 00 and 2", root, in.NumRecords())
	}
	first, err := in.RecordBatch(0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := first.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"messages":[{"content":"be | brief","role":"system"},{"content":"é\n","role":"user"}]`, `"seed":18446744073709551615`,
		`"token_ids":[3]`, `"status":"error"`, `"error_code":"invalid_value"`, `"completion":null`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestFolderIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	s, err := Create(dir, options(Parquet, 5))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(&rows(1)[0]); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names(t, dir), "data") {
		t.Error("data has its final name before it is whole")
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "1 rows were written, 5 were announced") {
		t.Errorf("too few rows: %v", err)
	}
	again, err := Create(dir, options(Parquet, 0)) // after a run that was killed
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"train-00000-of-00001.parquet"}, names(t, filepath.Join(dir, "data"))); diff != "" {
		t.Error(diff)
	}
	if _, err := Create(dir, options(Parquet, 5)); err == nil {
		t.Error("data that is there was not kept")
	}
	other := t.TempDir()
	if s, err = Create(other, options(Parquet, 5)); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(&rows(1)[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, other); len(left) > 0 {
		t.Errorf("a failure leaves %v", left)
	}
}

func TestSpeculatorsNeedIDs(t *testing.T) {
	s, err := Create(t.TempDir(), options(Speculators, 2))
	if err != nil {
		t.Fatal(err)
	}
	list := rows(2)
	if err := s.Write(&list[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(&list[1]); err == nil || !strings.Contains(err.Error(), "row 1 has no token ids; run the job with sampling.return_token_ids: true") {
		t.Errorf("error is %v", err)
	}
}

func TestCardKeepsItsTable(t *testing.T) {
	dir, s := fill(t, options(Parquet, 1), rows(1))
	if err := s.Card("qa: \"x\"", []Line{{"a | b", "line\n| <script>"}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"path: data/train-*.parquet\n", `pretty_name: "qa: \"x\""`, `line \| &lt;script>`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	if err := s.Card("other", nil); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(dir, "README.md")); string(again) != string(data) {
		t.Error("a card that was there was written over")
	}
}
