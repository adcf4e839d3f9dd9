package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
)

// crowded is the CPU device with a fault: where logits of several rows are read at once, the first row gets those of
// its neighbour. A lane alone never sees it.
type crowded struct{ *cpu.Device }

func (d crowded) Begin() backend.Pass { return crowdedPass{d.Device.Begin().(*cpu.Pass)} }

type crowdedPass struct{ *cpu.Pass }

func (p crowdedPass) Read(dst []float32, src backend.Buffer) {
	p.Pass.Read(dst, src)
	if rows, cols := src.Shape(); rows > 1 {
		copy(dst[:cols], dst[cols:2*cols])
	}
}

// TestFaultyDeviceEndsTheRun plants wrong tokens in the replies of a device that mixes up its rows. Without guesses an
// audit ends the run with code 4 and one line that says which token of which reply; guesses are refused, never
// silently left out. Nothing is left under a final name.
func TestFaultyDeviceEndsTheRun(t *testing.T) {
	devices["crowded"] = func(o cpu.Options) (backend.Device, error) {
		d, err := cpu.Open(o)
		return crowded{d}, err
	}
	t.Cleanup(func() { delete(devices, "crowded") })
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("in.jsonl", strings.Repeat("{\"prompt\":\"What does strings.Cut do?\"}\n{\"prompt\":\"What is a rune?\"}\n", 4))
	// The samples of a row begin together, so there are rows to mix up however slowly the input comes.
	const job = "version: 1\njobs:\n  - { name: a, model: builtin:gopher-15m, lanes: 4, audit: 100%, input: { path: in.jsonl }, sampling: { max_tokens: 8, n: 4, temperature: 1 } }\n"
	path := write("job.yaml", job)
	for _, c := range []struct {
		device, draft string
		code          int
		begins, holds string
	}{
		{"cpu", "off", exitOK, "", ""},
		{"crowded", "off", exitDiffers, `tfbatch: job a: generate: audit: row "`, ", plain decoding gives id "},
		{"crowded", "fixed:2", exitRefused, "tfbatch: job a: guesses are refused: device ", "turn drafting off"},
		{"crowded", "auto", exitRefused, "tfbatch: job a: guesses are refused: device ", "turn drafting off"},
	} {
		var out, errs bytes.Buffer
		to := filepath.Join(dir, c.device+c.draft)
		code := run([]string{"run", path, "--device", c.device, "--draft", c.draft, "--quiet", "--out", to}, strings.NewReader(""), &out, &errs)
		line := errs.String()
		if code != c.code || !strings.HasPrefix(line, c.begins) || !strings.Contains(line, c.holds) || strings.Count(line, "\n") != min(1, len(c.begins)) {
			t.Errorf("%s, %s: code %d, %q; want %d and one line that begins with %q", c.device, c.draft, code, line, c.code, c.begins)
		}
		if _, err := os.Stat(filepath.Join(to, "a", "rows.jsonl")); (err == nil) != (c.code == exitOK) {
			t.Errorf("%s, %s: rows.jsonl: %v", c.device, c.draft, err)
		}
	}
}
