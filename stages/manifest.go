package stages

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// manifestFormat names the layout of manifest.json.
const manifestFormat = "tfbatch/manifest/1"

// Provenance is what made the replies, apart from the job and its input.
type Provenance struct {
	Version    string     `json:"-"`          // of tfbatch: each run may be another's
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
	// Drafting may be filled while the run goes on, on the engine's goroutine.
	Drafting *Drafting `json:"drafting,omitempty"`
}

// Drafting is what guessed at tokens, and how well.
type Drafting struct {
	Mode     string        `json:"mode"` // auto, off or fixed:N
	Copy     bool          `json:"copy"`
	Drafter  *DrafterFiles `json:"drafter"` // nil without one
	Drafted  int64         `json:"drafted_tokens"`
	Accepted int64         `json:"accepted_tokens"`
}

// DrafterFiles are the digests of a drafter's checkpoint.
type DrafterFiles struct {
	Path   string       `json:"path"`
	Bits   int          `json:"bits"` // 0: as released
	Config row.Digest   `json:"config_sha256"`
	Shards []FileDigest `json:"shards"`
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
	Runs    []session `json:"runs"`
	Seconds float64   `json:"seconds"` // this and what follows: of the last run
	Tokens  float64   `json:"completion_tokens_per_second"`
	Audited int64     `json:"audited_replies"`
	Files   places    `json:"files"`
	RunFacts
}

// places are where the files of a job lay, seen from the manifest's folder where there is a
// way: the job's own paths start from its job file.
type places struct {
	Model    string `json:"model"`
	Input    string `json:"input"`
	Template string `json:"template"`
}

func newPlaces(job *jobs.Job, dir string) places {
	seen := func(p jobs.Path) string {
		if p.File == jobs.StdinPath || strings.HasPrefix(p.Name, jobs.BuiltinPrefix) || p.Name == jobs.TemplateCheckpoint {
			return p.Name
		}
		return filepath.ToSlash(relative(dir, p.File))
	}
	return places{seen(job.Model.Path), seen(job.Input.Path), seen(job.Prompt.Template)}
}

// relative is file seen from dir, or its full name where no way leads there.
func relative(dir, file string) string {
	full, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return full
	}
	if way, err := filepath.Rel(dir, full); err == nil {
		return way
	}
	return full
}

func newManifest(s *Setup, report *Report, made *published, input row.Digest, started time.Time) []byte {
	seconds := time.Since(started).Seconds()
	m := manifest{
		Format:     manifestFormat,
		Provenance: s.Provenance,
		Job:        s.Job.Canonical(),
		JobSHA256:  s.Job.Digest(),
		Input:      inputFacts{s.Job.Input.Path.Name, input},
		Counts:     report.Counts,
		Files:      made.files,
		Root:       report.Root,
		Leaves:     made.root.Leaves(),
		Volatile: volatile{
			Runs: s.Folder.done.sessions, Seconds: seconds,
			Tokens:   float64(report.Tokens) / seconds,
			Audited:  report.Audited,
			Files:    newPlaces(&s.Job, report.Dir),
			RunFacts: s.Provenance.Run,
		},
	}
	var b bytes.Buffer
	_ = json.Indent(&b, encodeJSON(m), "", "  ") // our own JSON
	b.WriteByte('\n')
	return b.Bytes()
}
