package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tfbatch/internal/regular"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// Record is a finished job's folder, to be checked. Job has its paths as they lie now.
type Record struct {
	Dir string
	Job jobs.Job

	manifest manifest
}

// ErrRecord is what makes a job's folder not comparable: a file that is not there, was
// changed, or does not fit the others.
var ErrRecord = errors.New("not comparable")

// maxManifest bounds a manifest: a thousand shards and a job file fit many times.
const maxManifest = 16 << 20

// OpenRecord reads the manifest of a job's folder, or of the folder that a rows.jsonl is in.
func OpenRecord(path string) (*Record, error) {
	dir := path
	if filepath.Base(path) == rowsName {
		dir = filepath.Dir(path)
	}
	data, err := readBounded(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	r := &Record{Dir: dir}
	if err := r.parse(data); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRecord, filepath.Join(dir, manifestName), err)
	}
	return r, nil
}

func (r *Record) parse(data []byte) error {
	m := &r.manifest
	if err := json.Unmarshal(data, m); err != nil {
		return err
	}
	if m.Format != manifestFormat {
		return fmt.Errorf("format is %.80q, want %q", m.Format, manifestFormat)
	}
	var canonical bytes.Buffer
	if err := json.Compact(&canonical, m.Job); err != nil {
		return err
	}
	var err error
	if r.Job, err = jobs.Restore(canonical.Bytes()); err != nil {
		return err
	}
	if digest := r.Job.Digest(); digest != m.JobSHA256 {
		return fmt.Errorf("job_sha256 is %.64q, the job's is %q", m.JobSHA256, digest)
	}
	seen := m.Volatile.Files
	for _, p := range []struct {
		path *jobs.Path
		name string
	}{{&r.Job.Model.Path, seen.Model}, {&r.Job.Input.Path, seen.Input}, {&r.Job.Prompt.Template, seen.Template}} {
		p.path.File = r.resolve(p.name)
	}
	r.Job.Run.Chunk = max(1, min(r.Job.Run.Chunk, m.Volatile.Chunk))
	return nil
}

// resolve is a place of the manifest from here.
func (r *Record) resolve(name string) string {
	if name == jobs.StdinPath || name == jobs.TemplateCheckpoint || strings.HasPrefix(name, jobs.BuiltinPrefix) {
		return name
	}
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.Dir, name)
}

// Arithmetic is the id of the arithmetic that the replies were made by.
func (r *Record) Arithmetic() string { return r.manifest.Arithmetic }

// SameModel says which part of a model is not what made the replies. Shards are compared
// once they are known.
func (r *Record) SameModel(m ModelFiles) error {
	was := &r.manifest.Model
	switch {
	case m.Config != was.Config:
		return fmt.Errorf("%w: config.json is %v, it was %v", ErrRecord, m.Config, was.Config)
	case m.Tokenizer != was.Tokenizer:
		return fmt.Errorf("%w: tokenizer.json is %v, it was %v", ErrRecord, m.Tokenizer, was.Tokenizer)
	case (m.Template == nil) != (was.Template == nil) || m.Template != nil && *m.Template != *was.Template:
		return fmt.Errorf("%w: the chat template is another one", ErrRecord)
	case m.Shards != nil && len(m.Shards) != len(was.Shards):
		return fmt.Errorf("%w: the model has %d shards, it had %d", ErrRecord, len(m.Shards), len(was.Shards))
	}
	for i, shard := range m.Shards {
		if shard != was.Shards[i] {
			return fmt.Errorf("%w: shard %s is %v, it was %s of %v", ErrRecord, shard.Name, shard.SHA256, was.Shards[i].Name, was.Shards[i].SHA256)
		}
	}
	return nil
}

// sameInput reads the input through and compares its digest. What follows may rest on it.
func (r *Record) sameInput() error {
	src, err := openSource(r.Job.Input.Path.File, nil)
	if err != nil {
		return fmt.Errorf("%w: input: %w", ErrRecord, err)
	}
	defer src.close()
	digest, err := src.digest()
	if err == nil && digest != r.manifest.Input.SHA256 {
		err = fmt.Errorf("is %v, it was %v", digest, r.manifest.Input.SHA256)
	}
	if err != nil {
		return fmt.Errorf("%w: input %s: %w", ErrRecord, r.Job.Input.Path.File, err)
	}
	return nil
}

// recordedRow is a line of rows.jsonl, as far as it is checked.
type recordedRow struct {
	ID       string `json:"custom_id"`
	Response struct {
		Body struct {
			Choices   []recordedChoice `json:"choices"`
			PromptIDs []int32          `json:"prompt_token_ids"`
		} `json:"body"`
	} `json:"response"`
	Error *failure `json:"error"`
	Place *place   `json:"tfbatch"` // of a row that failed
}

type recordedChoice struct {
	Message  *message `json:"message"`
	Text     *string  `json:"text"`
	TokenIDs []int32  `json:"token_ids"`
	Receipt  receipt  `json:"tfbatch"`
}

// text is the reply, of a chat or of a completion.
func (c *recordedChoice) text() string {
	switch {
	case c.Message != nil:
		return c.Message.Content
	case c.Text != nil:
		return *c.Text
	}
	return ""
}

// leaves are the digests that the row adds to the job root.
func (r *recordedRow) leaves() []row.Digest {
	if r.Error != nil {
		return []row.Digest{row.ErrorDigest(r.ID, r.Error.Code)}
	}
	var out []row.Digest
	for _, c := range r.Response.Body.Choices {
		p := &c.Receipt
		out = append(out, row.ChoiceDigest(r.ID, p.Sample, p.PromptSHA256, p.TokenSHA256, p.Finish))
	}
	return out
}

// maxRecordedLine bounds a line of rows.jsonl: far above the text of as many and as long
// replies as a row can have on any model.
const maxRecordedLine = 1 << 30

// recordedRows reads rows.jsonl line by line.
type recordedRows struct {
	file *os.File
	in   *lines
}

func (r *Record) rows() (*recordedRows, error) {
	f, err := regular.Open(filepath.Join(r.Dir, rowsName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return &recordedRows{f, newLines(f, maxRecordedLine)}, nil
}

// next returns io.EOF behind the last row.
func (r *recordedRows) next() (*recordedRow, error) {
	l, err := r.in.next()
	if err != nil {
		return nil, err
	}
	out := &recordedRow{}
	if err := json.Unmarshal(l.data, out); err != nil {
		return nil, fmt.Errorf("%w: line %d of %s: %w", ErrRecord, l.number, rowsName, err)
	}
	return out, nil
}

func (r *recordedRows) close() { _ = r.file.Close() } // it was only read

// readBounded reads a file that has no more than most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return data, err
}
