// Package stages is what a row goes through, a file for each stage: read, encode, generate,
// finish, write. It alone knows both rows and the engine.
//
// Start with [Run], the table of contents of a job. A row that fails carries its error to
// the output and the job goes on; a device or a disk that fails ends the run. Rows hold no
// value that depends on time, lanes or order, so two runs of a job give the same bytes.
package stages

import (
	"context"
	"io"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"tfbatch/internal/row"
	"tfbatch/jobs"
	"tfbatch/pipeline"
)

// queue is the size of the channels between stages. A channel only has to cover the time
// of one hand-over; how far read may be ahead is the window's business.
const queue = 16

// The window between read and write is counted in bytes: each row costs its line and an
// allowance for what becomes of it. It is many times the lanes of any device, so that lanes
// do not idle behind one long answer, and still bounds memory when every line is large.
const (
	windowBytes = 256 << 20
	rowBytes    = 32 << 10 // ids, text and bookkeeping of a usual reply
)

// Setup is what a run needs. All of it is the caller's and outlives the run.
type Setup struct {
	Job     jobs.Job
	Model   Model
	Encoder *Encoder
	Engine  Engine
	Stdin   io.Reader // of a job whose input is jobs.StdinPath
	// Folder is where the files go, and what an earlier run has done. It is not complete.
	Folder *Folder
	// Admit ends admission when it is done: rows that run are finished and written, the rest
	// is left for another run.
	Admit context.Context
	Meter *Meter
	Audit *Audit // nil: none
	// Provenance goes into the manifest as it is.
	Provenance Provenance
}

// Model is what stages know of a model.
type Model struct {
	Vocab     int
	Context   int     // positions of prompt and reply together
	BOS       int32   // -1 when there is none
	EOS       []int32 // what ends a reply
	Tokenizer Tokenizer
	Stream    func() Stream // starts a decoder of one reply
	Special   []SpecialToken
	Formats   *Formats // nil: rows that ask for a format are refused
}

// Tokenizer turns text into ids and back. Goroutines share it.
type Tokenizer interface {
	// Encode encodes text, special tokens in it included, and adds nothing.
	Encode(text string) []int32
	// EncodeFramed is Encode with the special tokens that the tokenizer puts around a text.
	EncodeFramed(text string) []int32
	// DecodeVisible is the text of ids without special tokens.
	DecodeVisible(ids []int32) string
}

// SpecialToken is a token that templates know by name, such as bos_token.
type SpecialToken struct{ Name, Text string }

// Report is what a run did.
type Report struct {
	Counts   Counts
	Complete bool       // every row of the input is in the output, under its final name
	Root     row.Digest // of a complete job
	Dir      string     // where the files are
	Tokens   int64      // drawn by this run, for rows that are done
	Audited  int64      // replies that an audit has made once more
}

// Run takes every row of the job's input that is not done through the stages. Once it has
// returned, what was done is in the journal, and when the report is complete in the files.
func Run(ctx context.Context, s *Setup) (*Report, error) {
	started := time.Now()
	folder := s.Folder
	if err := folder.begin(&s.Provenance, started); err != nil {
		return nil, err
	}
	done := folder.done
	earlier := done.counts.CompletionTokens
	s.Meter.begin(&done.counts, folder.total)
	window := semaphore.NewWeighted(windowBytes)
	read := &reader{job: &s.Job, stdin: s.Stdin, admit: s.Admit, window: window, meter: s.Meter,
		shard: folder.options.Shard, done: done.earlier(), hold: s.Job.Input.Path.File == jobs.StdinPath, audit: s.Audit}
	generate := &generator{engine: s.Engine, model: &s.Model, stopped: func() bool { return s.Admit.Err() != nil }, meter: s.Meter}
	if s.Audit != nil {
		generate.audit = &auditor{Audit: s.Audit, equal: done.equal}
	}
	write := &writer{job: &s.Job, done: done, window: window, meter: s.Meter, path: folder.path(journalName)}
	workers := runtime.GOMAXPROCS(0)

	err := pipeline.Run(ctx, queue, read.stage(), s.Encoder.stage(workers), generate.stage(), finish(s.Model.Tokenizer, workers), write.stage())

	report := &Report{Counts: done.counts, Dir: folder.dir, Tokens: done.counts.CompletionTokens - earlier}
	report.Counts.add(&read.counts)
	if generate.audit != nil {
		report.Audited = generate.audit.done
	}
	if err == nil && read.ended && done.counts.Rows == read.mine {
		end := func() error { return s.complete(report, read, started) }
		if folder.options.Shard.Of > 0 {
			end = func() error { return s.endShard(report, read) }
		}
		err = end()
	}
	return report, err
}

// complete makes the final files once every row is done.
func (s *Setup) complete(report *Report, read *reader, started time.Time) error {
	f := s.Folder
	if err := f.sameInput(read.digest); err != nil {
		return err
	}
	made, err := f.build(read.rows, f.done.read)
	if err != nil {
		return err
	}
	report.Counts, report.Root = made.counts, made.root.Sum()
	report.Counts.add(&read.counts)
	if err := f.publish(newManifest(s, report, made, read.digest, started), report.Counts.Errors == 0); err != nil {
		return err
	}
	report.Complete = true
	return nil
}
