package stages

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// Shard is a part of a job's rows: those whose key hashes to it. Index counts from 1; the zero value is all rows.
type Shard struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// MaxShards is far above the machines that share a job.
const MaxShards = 4096

// shardTag keeps the hash that chooses a shard apart from all others.
const shardTag = "tfbatch/shd/1\n"

// ParseShard reads "2/4".
func ParseShard(text string) (Shard, error) {
	index, of, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || n < 1 || n > MaxShards || i < 1 || i > n {
		return Shard{}, fmt.Errorf("is %q, want one as 2/4: from 1/n to n/n, n at most %d", text, MaxShards)
	}
	return Shard{i, n}, nil
}

func (s Shard) String() string { return fmt.Sprintf("%d of %d", s.Index, s.Of) }

// dir is where the rows of a shard go, beside where those of the whole job would.
func (s Shard) dir(job *jobs.Job) string {
	if s.Of == 0 {
		return OutputDir(job)
	}
	return fmt.Sprintf("%s.shard-%d-of-%d", OutputDir(job), s.Index, s.Of)
}

// has reports whether the row of a key is of the shard. Rows of one key are of one shard.
func (s Shard) has(key string) bool {
	if s.Of == 0 {
		return true
	}
	sum := sha256.Sum256([]byte(shardTag + key))
	return binary.LittleEndian.Uint64(sum[:])%uint64(s.Of) == uint64(s.Index-1)
}

// shardEnd is the record of a shard that is done: what the manifest of the whole job needs of the input.
type shardEnd struct {
	Shard   Shard      `json:"shard"`
	Rows    int64      `json:"rows"` // of the whole input
	Lines   int64      `json:"lines"`
	Blank   int64      `json:"blank_lines"`
	Skipped int64      `json:"skipped_duplicates"`
	Input   row.Digest `json:"input_sha256"`
	Files   places     `json:"files"`
	Audited int64      `json:"audited_replies"`
	Run     RunFacts   `json:"run"`
}

// endShard notes that every row of the shard is done. The journal stays: it is what a merge reads.
func (s *Setup) endShard(report *Report, read *reader) error {
	f := s.Folder
	if err := f.sameInput(read.digest); err != nil {
		return err
	}
	c := &read.counts
	end := shardEnd{f.options.Shard, read.rows, c.Lines, c.Blank, c.Skipped, read.digest, newPlaces(&s.Job, f.dir), report.Audited, s.Provenance.Run}
	if _, err := f.done.log.Append(shardRecord, encodeJSON(end)); err != nil {
		return err
	}
	report.Complete = true
	return f.done.log.Sync()
}
