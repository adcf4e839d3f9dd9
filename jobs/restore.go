package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Restore is the job that Canonical wrote, as a manifest has it. How the work is done was no
// part of that and is as in a file that does not say; the files of paths are their names.
func Restore(canonical []byte) (Job, error) {
	j := fallback()
	d := json.NewDecoder(bytes.NewReader(canonical))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return Job{}, fmt.Errorf("job: %w", err)
	}
	if !bytes.Equal(j.Canonical(), canonical) { // a key twice or missing, or another spelling
		return Job{}, errors.New("job: not in canonical form")
	}
	if err := j.Sampling.Check(); err != nil {
		return Job{}, fmt.Errorf("job: sampling.%w", err)
	}
	if !safeName.MatchString(j.Name) || j.Input.MaxLineBytes < minLine {
		return Job{}, fmt.Errorf("job: name %.80q or input.max_line_bytes %d is nothing that a job file can say", j.Name, j.Input.MaxLineBytes)
	}
	return j, nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Path) UnmarshalText(text []byte) error {
	*p = Path{Name: string(text), File: string(text)}
	return nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (k *Kwargs) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("kwargs are %.80q, want an object", data)
	}
	*k = nil
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var m Kwarg
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		m.Key, _ = key.(string) // of an object, keys are nothing else
		*k = append(*k, m)
	}
	return nil
}
