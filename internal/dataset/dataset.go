// Package dataset writes replies as the files that trainers and the Hugging Face Hub read: Parquet shards, Arrow
// IPC and JSON lines for chats and for drafters, with a card. It knows no job, no model and no device.
//
// Start with [Create]; the columns are in schema.go. A folder under its final name is complete.
package dataset

import (
	"fmt"
	"os"
	"path/filepath"
)

// Row is one reply, or one prompt that has none.
type Row struct {
	CustomID         string
	Row              int64
	Sample           int32
	Messages         []Message // of a chat; else Prompt
	Prompt           string
	Completion       string
	FinishReason     string
	PromptTokens     int32
	CompletionTokens int32
	Seed             uint64
	PromptSHA256     string
	TokenSHA256      string
	PromptIDs        []int32 // nil unless the job recorded ids
	TokenIDs         []int32
	ErrorCode        string // empty: there is a reply
}

// status is "ok", or "error" for a row without reply.
func (r *Row) status() string {
	if r.ErrorCode != "" {
		return "error"
	}
	return "ok"
}

// Message is one turn of a chat.
type Message struct {
	Role    string `json:"role" parquet:"role"`
	Content string `json:"content" parquet:"content"`
}

// Writer takes rows one by one. Close finishes its file.
type Writer interface {
	Write(r *Row) error
	Close() error
}

// Format is a kind of file.
type Format string

// The formats. Chats are {"messages": […]} with the reply as the last turn, ShareGPT {"conversations": […]};
// speculators' lines are {"input_ids": […], "loss_mask": […]}, 1 where the model spoke.
const (
	Parquet     Format = "parquet"
	Arrow       Format = "arrow"
	Chats       Format = "jsonl"
	ShareGPT    Format = "sharegpt"
	Speculators Format = "speculators"
)

// Formats lists them all.
var Formats = []Format{Parquet, Arrow, Chats, ShareGPT, Speculators}

// FormatNames are their names.
func FormatNames() []string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return names
}

func (f Format) ext() string {
	if f == Parquet || f == Arrow {
		return string(f)
	}
	return "jsonl"
}

// Options say how a dataset is cut.
type Options struct {
	Format    Format
	Split     string            // the first part of the files' names: "train"
	Rows      int64             // that will be written; names hold how many shards there are
	ShardRows int64             // in one file at most
	GroupRows int64             // in one row group, or record batch
	Facts     map[string]string // go into the files' own metadata where the format has some
}

// Set is a dataset that is being written, into a folder beside its final place.
type Set struct {
	o       Options
	dir     string // the final place
	written int64
	shard   int64
	file    *os.File
	out     Writer
	seen    map[string]struct{} // hashes of replies
	twice   int64
}

// dataDir is where shards lie in a dataset's folder, as the Hub has it.
const dataDir = "data"

// Create begins a dataset in dir, whose data must not be there yet.
func Create(dir string, o Options) (*Set, error) {
	s := &Set{o: o, dir: dir, seen: map[string]struct{}{}}
	if _, err := os.Stat(filepath.Join(dir, dataDir)); err == nil {
		return nil, fmt.Errorf("%s is there already; name another folder", filepath.Join(dir, dataDir))
	}
	if err := os.RemoveAll(s.partial()); err != nil { // of a run that was stopped
		return nil, err
	}
	return s, os.MkdirAll(s.partial(), 0o777)
}

func (s *Set) partial() string { return filepath.Join(s.dir, "."+dataDir+".partial") }

// shards is how many files there will be, at least one.
func (s *Set) shards() int64 { return max(1, (s.o.Rows+s.o.ShardRows-1)/s.o.ShardRows) }

// name is the name of a shard, as train-00003-of-00010.parquet.
func (s *Set) name(shard int64) string {
	return fmt.Sprintf("%s-%05d-of-%05d.%s", s.o.Split, shard, s.shards(), s.o.Format.ext())
}

// Write adds a row.
func (s *Set) Write(r *Row) error {
	if s.out == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	if r.TokenSHA256 != "" {
		if _, ok := s.seen[r.TokenSHA256]; ok {
			s.twice++
		}
		s.seen[r.TokenSHA256] = struct{}{}
	}
	if err := s.out.Write(r); err != nil {
		return fmt.Errorf("%s: %w", s.name(s.shard), err)
	}
	if s.written++; s.written%s.o.ShardRows == 0 {
		return s.finish()
	}
	return nil
}

// Duplicates is how many replies so far had the very tokens of one before them.
func (s *Set) Duplicates() int64 { return s.twice }

func (s *Set) open() error {
	f, err := os.Create(filepath.Join(s.partial(), s.name(s.shard)))
	if err != nil {
		return err
	}
	s.file = f
	s.out, err = s.writer(f)
	return err
}

func (s *Set) writer(f *os.File) (Writer, error) {
	switch s.o.Format {
	case Parquet:
		return newParquet(f, s.o), nil
	case Arrow:
		return newArrow(f, s.o)
	}
	return newLines(f, s.o.Format), nil
}

func (s *Set) finish() error {
	err := s.out.Close()
	if err == nil {
		err = s.file.Sync()
	}
	if shut := s.file.Close(); err == nil {
		err = shut
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name(s.shard), err)
	}
	s.out, s.file = nil, nil
	s.shard++
	return nil
}

// Close finishes the last shard and gives the data its final name. A dataset without rows has one empty shard.
func (s *Set) Close() error {
	if s.written != s.o.Rows {
		return fmt.Errorf("%d rows were written, %d were announced", s.written, s.o.Rows)
	}
	if s.out == nil && s.written == 0 {
		if err := s.open(); err != nil {
			return err
		}
	}
	if s.out != nil {
		if err := s.finish(); err != nil {
			return err
		}
	}
	return os.Rename(s.partial(), filepath.Join(s.dir, dataDir))
}

// Discard takes away what was written, after a failure.
func (s *Set) Discard() error {
	if s.file != nil {
		_ = s.file.Close() // it goes away
	}
	return os.RemoveAll(s.partial())
}
