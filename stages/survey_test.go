package stages

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

func TestSurvey(t *testing.T) {
	s := newSetup(t, mixedInput, func(j *jobs.Job) { j.Sampling.MaxTokens = 50 })
	kept := 0
	got, err := Take(t.Context(), &s.Job, s.Encoder, nil, func(*row.Row) { kept++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(got.First) != 3 || got.First[1].Line != 7 {
		t.Fatalf("first errors %+v, want those of lines 6, 7 and 10", got.First)
	}
	got.Input, got.First = row.Digest{}, got.First[:1]
	want := &Survey{
		Lines: 10, Blank: 1, Rows: 9, Errors: 3,
		ByCode:       map[row.Code]int64{row.InvalidJSON: 1, row.DuplicateID: 1, row.ContextLength: 1},
		First:        []RowError{{6, "row-000000004", row.InvalidJSON, "unexpected end of JSON input, at byte 10 of the line"}},
		PromptTokens: 124, Shortest: 2, Longest: 30,
		MaxNewTokens: 6*50 + 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if kept != 6 {
		t.Errorf("%d rows were shown, want the 6 without an error", kept)
	}
	if len(files(t, s)) != 0 {
		t.Error("a survey wrote files")
	}
}
