package main

import (
	"encoding/json"
	"fmt"
	"io"

	"tfbatch/internal/regular"
	"tfbatch/internal/report"
	"tfbatch/stages"
)

// maxReceipt bounds what verify --json writes: twenty problems of a line each fit many times.
const maxReceipt = 1 << 20

// readReceipt reads what verify --json wrote of a job.
func readReceipt(path string, of *stages.View) (*verifyReport, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReceipt+1))
	if err != nil {
		return nil, err
	}
	r := &verifyReport{}
	if len(data) > maxReceipt || json.Unmarshal(data, r) != nil || r.Hashes == nil || r.Mode == "" {
		return nil, fmt.Errorf("%s is not what verify --json writes", path)
	}
	if of.Record == nil || r.Hashes.Root != of.Record.Facts().Root {
		return nil, fmt.Errorf("%s is of another job: its root is %v", path, r.Hashes.Root)
	}
	return r, nil
}

// enter puts a receipt into the verdict of a page.
func (r *verifyReport) enter(v *report.Verdict) {
	if p := r.Replay; p != nil {
		v.Lines = append(v.Lines, fmt.Sprintf("verify made %s replies of %s rows once more, one at a time without guesses on %s: %s.",
			thousands(p.Replies), thousands(p.Rows), r.Device, r.Verdict))
	}
	if r.Verdict == "equal" {
		return
	}
	v.Mood, v.Word = report.Bad, r.Verdict
	v.Lines = append(v.Lines, r.Reason)
}
