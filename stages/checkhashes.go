package stages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"

	"tfbatch/internal/regular"
	"tfbatch/internal/row"
)

// Hashes is what a record's files say, computed again.
type Hashes struct {
	Rows     int64      `json:"rows"`
	Replies  int64      `json:"replies"`
	Root     row.Digest `json:"job_root"`
	Problems []string   `json:"problems"` // the first of them; none: the record is whole

	draws []uint64 // of rows with a reply, for a sample
}

// maxProblems is how many problems are listed; one is enough to distrust a record.
const maxProblems = 20

func (h *Hashes) problem(format string, args ...any) {
	if len(h.Problems) < maxProblems {
		h.Problems = append(h.Problems, fmt.Sprintf(format, args...))
	}
}

// CheckHashes holds the files against the manifest, and its job root and counts against the
// rows. No model is needed. The error is of reading; what does not fit is a problem.
func (r *Record) CheckHashes(ctx context.Context) (*Hashes, error) {
	h := &Hashes{Problems: []string{}}
	r.checkFiles(h)
	counts := Counts{ByFinish: map[row.Finish]int64{}, ByCode: map[row.Code]int64{}}
	root, err := r.readRows(ctx, h, &counts)
	if err != nil {
		if errors.Is(err, ErrRecord) { // what follows would only repeat it
			h.problem("%v", err)
			return h, nil
		}
		return nil, err
	}
	h.Rows, h.Replies, h.Root = counts.Rows, counts.Replies, root.Sum()
	m := &r.manifest
	if h.Root != m.Root || root.Leaves() != m.Leaves {
		h.problem("job root of the rows is %v over %d leaves, the manifest has %v over %d", h.Root, root.Leaves(), m.Root, m.Leaves)
	}
	counts.add(&m.Counts) // lines of the input are not in the rows
	if !equalCounts(&counts, &m.Counts) {
		h.problem("counts of the rows are %+v, the manifest has %+v", counts, m.Counts)
	}
	return h, nil
}

// checkFiles compares the two files as they are stored.
func (r *Record) checkFiles(h *Hashes) {
	listed := map[string]FileDigest{}
	for _, f := range r.manifest.Files {
		listed[f.Name] = f
	}
	for _, name := range []string{rowsName, errorsName} {
		want, ok := listed[name]
		if !ok || len(listed) != 2 {
			h.problem("the manifest lists %d files, want %s and %s", len(r.manifest.Files), rowsName, errorsName)
			return
		}
		got, err := digestFile(filepath.Join(r.Dir, name))
		got.Name = name
		switch {
		case err != nil:
			h.problem("%v", err)
		case got != want:
			h.problem("%s has %d bytes with digest %v, the manifest has %d with %v", name, got.Bytes, got.SHA256, want.Bytes, want.SHA256)
		}
	}
}

func digestFile(path string) (FileDigest, error) {
	f, err := regular.Open(path)
	if err != nil {
		return FileDigest{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return FileDigest{Bytes: n, SHA256: row.Digest(sum.Sum(nil))}, err
}

// readRows takes every row into the root and the counts.
func (r *Record) readRows(ctx context.Context, h *Hashes, counts *Counts) (row.Root, error) {
	var root row.Root
	in, err := r.rows()
	if err != nil {
		return root, err
	}
	defer in.close()
	for {
		one, err := in.next()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return root, err
		}
		for _, leaf := range one.leaves() {
			root.Add(leaf)
		}
		one.count(counts)
		if one.Error == nil {
			h.draws = append(h.draws, draw(one.ID))
		}
	}
}

// count is Counts.row of a row that is read back.
func (r *recordedRow) count(c *Counts) {
	c.Rows++
	if r.Error != nil {
		c.Errors++
		c.ByCode[r.Error.Code]++
		return
	}
	for i, choice := range r.Response.Body.Choices {
		if i == 0 {
			c.PromptTokens += int64(choice.Receipt.PromptTokens)
		}
		c.Replies++
		c.CompletionTokens += int64(choice.Receipt.CompletionTokens)
		c.ByFinish[choice.Receipt.Finish]++
	}
}

func equalCounts(a, b *Counts) bool {
	if !maps.Equal(a.ByFinish, b.ByFinish) || !maps.Equal(a.ByCode, b.ByCode) {
		return false
	}
	x, y := *a, *b
	x.ByFinish, x.ByCode, y.ByFinish, y.ByCode = nil, nil, nil, nil
	return fmt.Sprint(x) == fmt.Sprint(y)
}
