package dataset

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The columns: flat, with types that never depend on the rows. A prompt is messages or prompt, the other is null;
// a row without reply has a status of "error" and nulls for what a reply has.
var columns = []arrow.Field{
	{Name: "custom_id", Type: arrow.BinaryTypes.String},
	{Name: "row", Type: arrow.PrimitiveTypes.Int64},
	{Name: "sample", Type: arrow.PrimitiveTypes.Int32},
	{Name: "messages", Type: arrow.ListOf(turn), Nullable: true},
	{Name: "prompt", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "completion", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "finish_reason", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "prompt_tokens", Type: arrow.PrimitiveTypes.Int32},
	{Name: "completion_tokens", Type: arrow.PrimitiveTypes.Int32},
	{Name: "seed", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "prompt_sha256", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "token_sha256", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "prompt_token_ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "token_ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "status", Type: arrow.BinaryTypes.String},
	{Name: "error_code", Type: arrow.BinaryTypes.String, Nullable: true},
}

var turn = arrow.StructOf(
	arrow.Field{Name: "role", Type: arrow.BinaryTypes.String},
	arrow.Field{Name: "content", Type: arrow.BinaryTypes.String},
)

// addRow appends r, in the order of columns.
func addRow(b *array.RecordBuilder, r *Row) {
	at := 0
	next := func() array.Builder { at++; return b.Field(at - 1) }
	text := func(s string, has bool) {
		if f := next().(*array.StringBuilder); has {
			f.Append(s)
		} else {
			f.AppendNull()
		}
	}
	reply := r.ErrorCode == ""
	text(r.CustomID, true)
	next().(*array.Int64Builder).Append(r.Row)
	next().(*array.Int32Builder).Append(r.Sample)
	addTurns(next().(*array.ListBuilder), r.Messages)
	text(r.Prompt, r.Prompt != "")
	text(r.Completion, reply)
	text(r.FinishReason, reply)
	next().(*array.Int32Builder).Append(r.PromptTokens)
	next().(*array.Int32Builder).Append(r.CompletionTokens)
	next().(*array.Uint64Builder).Append(r.Seed)
	text(r.PromptSHA256, reply)
	text(r.TokenSHA256, reply)
	addIDs(next().(*array.ListBuilder), r.PromptIDs)
	addIDs(next().(*array.ListBuilder), r.TokenIDs)
	text(r.status(), true)
	text(r.ErrorCode, !reply)
}

func addTurns(list *array.ListBuilder, turns []Message) {
	list.Append(turns != nil)
	pair := list.ValueBuilder().(*array.StructBuilder)
	for _, m := range turns {
		pair.Append(true)
		pair.FieldBuilder(0).(*array.StringBuilder).Append(m.Role)
		pair.FieldBuilder(1).(*array.StringBuilder).Append(m.Content)
	}
}

func addIDs(list *array.ListBuilder, ids []int32) {
	list.Append(ids != nil)
	list.ValueBuilder().(*array.Int32Builder).AppendValues(ids, nil)
}
