package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// Records are all that a gate leaves behind.
type Records struct {
	Metadata any // what was measured on what
	Measured []Measured
	Summary  *Summary
}

// file is a record with its name.
type file struct {
	name string
	data []byte
}

// Write makes the folder dir, which must not be there, and in it metadata.json, cells.jsonl (a
// line per trial), requests.jsonl (a line per reply), summary.txt, summary.svg and, last, as
// it holds the digests of the others, summary.json.
func Write(dir string, r *Records) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	files, err := r.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *Records) files() ([]file, error) {
	metadata, err := pretty(r.Metadata)
	if err != nil {
		return nil, err
	}
	var cells, requests bytes.Buffer
	for i := range r.Measured {
		m := &r.Measured[i]
		if err := line(&cells, trialRecord{m.Trial, m.Outcome, m.PerSec()}); err != nil {
			return nil, err
		}
		for _, reply := range m.Replies {
			if err := line(&requests, replyRecord{m.Trial, reply}); err != nil {
				return nil, err
			}
		}
	}
	files := []file{
		{"metadata.json", metadata}, {"cells.jsonl", cells.Bytes()}, {"requests.jsonl", requests.Bytes()},
		{"summary.txt", []byte(r.Summary.Text())}, {"summary.svg", []byte(r.Summary.SVG())},
	}
	sums := map[string]string{}
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		sums[f.name] = hex.EncodeToString(sum[:])
	}
	summary, err := pretty(summaryRecord{r.Summary, sums})
	return append(files, file{"summary.json", summary}), err
}

type trialRecord struct {
	Trial
	Outcome
	PerSec float64 `json:"tokens_per_second"`
}

type replyRecord struct {
	Trial
	Reply
}

type summaryRecord struct {
	*Summary
	Files map[string]string `json:"files_sha256"`
}

func line(b *bytes.Buffer, v any) error {
	data, err := json.Marshal(v)
	b.Write(data)
	b.WriteByte('\n')
	return err
}

func pretty(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}
