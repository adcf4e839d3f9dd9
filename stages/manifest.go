package stages

import (
	"bytes"
	"encoding/json"
	"time"

	"tfbatch/internal/row"
)

// manifestFormat names the layout of manifest.json.
const manifestFormat = "tfbatch/manifest/1"

// Provenance is what made the replies, apart from the job and its input.
type Provenance struct {
	Version    string     `json:"version"`    // of tfbatch
	Arithmetic string     `json:"arithmetic"` // id of the arithmetic: equality is promised within one
	Model      ModelFiles `json:"model"`

	// Run is how the work was done. It cannot change a row.
	Run RunFacts `json:"-"`
}

// ModelFiles are the digests of a checkpoint.
type ModelFiles struct {
	Arch      string       `json:"arch"`
	Shards    []FileDigest `json:"shards"`
	Config    row.Digest   `json:"config_sha256"`
	Tokenizer row.Digest   `json:"tokenizer_sha256"`
	Template  *row.Digest  `json:"template_sha256"` // nil without a template
}

// FileDigest is one file by name.
type FileDigest struct {
	Name   string     `json:"name"`
	Bytes  int64      `json:"bytes"`
	SHA256 row.Digest `json:"sha256"`
}

// RunFacts is the volatile part of a run, apart from its times.
type RunFacts struct {
	Device string `json:"device"`
	Lanes  int    `json:"lanes"`
	Chunk  int    `json:"chunk"`
}

// manifest is what manifest.json holds. All but Volatile is the same for every run of the
// same job over the same input and model.
type manifest struct {
	Format string `json:"format"`
	Provenance
	Job       json.RawMessage `json:"job"`
	JobSHA256 string          `json:"job_sha256"`
	Input     inputFacts      `json:"input"`
	Counts    Counts          `json:"counts"`
	Files     []FileDigest    `json:"files"`
	Root      row.Digest      `json:"job_root"`
	Leaves    uint64          `json:"job_root_leaves"`
	Volatile  volatile        `json:"volatile"`
}

type inputFacts struct {
	Path   string     `json:"path"`
	SHA256 row.Digest `json:"sha256"` // of the file as stored, compressed or not
}

type volatile struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Tokens  float64   `json:"completion_tokens_per_second"`
	RunFacts
}

func newManifest(s *Setup, report *Report, leaves uint64, input row.Digest, out *output, started time.Time) []byte {
	seconds := time.Since(started).Seconds()
	m := manifest{
		Format:     manifestFormat,
		Provenance: s.Provenance,
		Job:        s.Job.Canonical(),
		JobSHA256:  s.Job.Digest(),
		Input:      inputFacts{s.Job.Input.Path.Name, input},
		Counts:     report.Counts,
		Files: []FileDigest{
			{rowsName, out.rows.size, out.rows.digest()},
			{errorsName, out.errors.size, out.errors.digest()},
		},
		Root:   report.Root,
		Leaves: leaves,
		Volatile: volatile{
			Started: started.UTC(), Seconds: seconds,
			Tokens:   float64(report.Counts.CompletionTokens) / seconds,
			RunFacts: s.Provenance.Run,
		},
	}
	var b bytes.Buffer
	_ = json.Indent(&b, encodeJSON(m), "", "  ") // our own JSON
	b.WriteByte('\n')
	return b.Bytes()
}
