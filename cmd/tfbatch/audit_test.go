package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/jobs"
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

// TestAuditEndsTheRunOnAFaultyDevice plants wrong tokens in the replies of a device that mixes up its rows: run ends
// with code 4 and one line that says which token of which reply, and leaves nothing under a final name.
func TestAuditEndsTheRunOnAFaultyDevice(t *testing.T) {
	devices["crowded"] = func(r jobs.Run, isa cpu.ISA) (backend.Device, error) {
		d, err := cpu.Open(cpu.Options{Threads: r.Threads, ISA: isa})
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
	const job = "version: 1\njobs:\n  - { name: a, model: builtin:gopher-15m, lanes: 4, audit: 100%, input: { path: in.jsonl }, sampling: { max_tokens: 8 } }\n"
	path := write("job.yaml", job)
	for device, want := range map[string]struct {
		code int
		line string
	}{
		"cpu":     {exitOK, ""},
		"crowded": {exitDiffers, `tfbatch: job a: generate: audit: row "`},
	} {
		var out, errs bytes.Buffer
		to := filepath.Join(dir, device)
		code := run([]string{"run", path, "--device", device, "--draft", "off", "--quiet", "--out", to}, strings.NewReader(""), &out, &errs)
		line := errs.String()
		if code != want.code || !strings.HasPrefix(line, want.line) || strings.Count(line, "\n") != min(1, len(want.line)) {
			t.Errorf("%s: code %d, %q; want %d and one line that begins with %q", device, code, line, want.code, want.line)
		}
		if _, err := os.Stat(filepath.Join(to, "a", "rows.jsonl")); (err == nil) != (want.code == exitOK) {
			t.Errorf("%s: rows.jsonl: %v", device, err)
		}
		if want.line != "" && !strings.Contains(line, ", plain decoding gives id ") {
			t.Errorf("%s: %q", device, line)
		}
	}
}
