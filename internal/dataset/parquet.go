package dataset

import (
	"io"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// record is a row as Parquet has it; the columns are those of schema.go.
type record struct {
	CustomID         string    `parquet:"custom_id"`
	Row              int64     `parquet:"row"`
	Sample           int32     `parquet:"sample"`
	Messages         []Message `parquet:"messages,list,optional"`
	Prompt           *string   `parquet:"prompt,optional"`
	Completion       *string   `parquet:"completion,optional"`
	FinishReason     *string   `parquet:"finish_reason,optional,dict"`
	PromptTokens     int32     `parquet:"prompt_tokens"`
	CompletionTokens int32     `parquet:"completion_tokens"`
	Seed             uint64    `parquet:"seed"`
	PromptSHA256     *string   `parquet:"prompt_sha256,optional"`
	TokenSHA256      *string   `parquet:"token_sha256,optional"`
	PromptIDs        []int32   `parquet:"prompt_token_ids,list,optional"`
	TokenIDs         []int32   `parquet:"token_ids,list,optional"`
	Status           string    `parquet:"status,dict"`
	ErrorCode        *string   `parquet:"error_code,optional,dict"`
}

func newRecord(r *Row) record {
	reply := r.ErrorCode == ""
	return record{
		CustomID: r.CustomID, Row: r.Row, Sample: r.Sample,
		Messages: r.Messages, Prompt: optional(r.Prompt, r.Prompt != ""),
		Completion: optional(r.Completion, reply), FinishReason: optional(r.FinishReason, reply),
		PromptTokens: r.PromptTokens, CompletionTokens: r.CompletionTokens, Seed: r.Seed,
		PromptSHA256: optional(r.PromptSHA256, reply), TokenSHA256: optional(r.TokenSHA256, reply),
		PromptIDs: r.PromptIDs, TokenIDs: r.TokenIDs,
		Status: r.status(), ErrorCode: optional(r.ErrorCode, !reply),
	}
}

func optional(s string, has bool) *string {
	if !has {
		return nil
	}
	return &s
}

// parquetFile is one shard, in zstd.
type parquetFile struct {
	out   *parquet.GenericWriter[record]
	group int64
	rows  int64
}

func newParquet(w io.Writer, o Options) *parquetFile {
	options := []parquet.WriterOption{parquet.Compression(&parquet.Zstd), parquet.CreatedBy("tfbatch", "1", "")}
	for _, key := range slices.Sorted(maps.Keys(o.Facts)) {
		options = append(options, parquet.KeyValueMetadata(key, o.Facts[key]))
	}
	return &parquetFile{out: parquet.NewGenericWriter[record](w, options...), group: o.GroupRows}
}

func (p *parquetFile) Write(r *Row) error {
	if _, err := p.out.Write([]record{newRecord(r)}); err != nil {
		return err
	}
	if p.rows++; p.rows%p.group == 0 {
		return p.out.Flush() // ends the row group
	}
	return nil
}

func (p *parquetFile) Close() error { return p.out.Close() }
