package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Canonical is the job as one line of JSON: every value that can change a row of the
// output, keys in a fixed order, those of maps sorted. Paths are as the job file has them,
// so a folder may move; what they name is digested on its own.
func (j Job) Canonical() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(j); err != nil {
		panic(fmt.Sprintf("jobs: canonical form of %q: %v", j.Name, err)) // Parse let only encodable values in
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// Digest is the SHA-256 of Canonical in hex.
func (j Job) Digest() string {
	sum := sha256.Sum256(j.Canonical())
	return hex.EncodeToString(sum[:])
}

// quote is s as a JSON string.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
