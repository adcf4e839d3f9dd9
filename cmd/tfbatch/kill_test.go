//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var kills = flag.Int("kills", 8, "how many runs TestKilledAnywhere kills")

// killJob has greedy and sampled rows, short and long ones, several replies and an error.
const killJob = `version: 1
jobs:
  - name: j
    model: builtin:gopher-15m
    input: { path: rows.jsonl }
    sampling: { max_tokens: 24, seed: 3%s }
    drafter: { path: "%s", mode: "%s" }
`

func killRows() string {
	var b strings.Builder
	for i, name := range []string{"Fields", "Cut", "Index", "Split", "Join", "Repeat", "Map", "Title", "Trim", "Count", "EqualFold", "HasPrefix"} {
		fmt.Fprintf(&b, "{\"custom_id\":\"%s\",\"prompt\":\"What does strings.%s do?\",\"n\":%d,\"max_tokens\":%d}\n", name, name, 1+i%3/2, 4+3*i)
	}
	return b.String() + "nonsense\n"
}

// TestKilledAnywhere kills runs with SIGKILL at random moments, some of them while they go on
// after another kill, and lets the last one end: the files are those of a run that nothing
// has disturbed, byte for byte. It goes over greedy and sampled, drafted and plain.
func TestKilledAnywhere(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("random seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for i, way := range []struct{ name, sampling, drafter, mode string }{
		{"greedy plain", "", "builtin:gopher-15m-dspark", "off"},
		{"sampled drafted", ", temperature: 0.8", "builtin:gopher-15m-dspark", "fixed:3"},
		{"greedy drafted", "", "builtin:gopher-15m-dspark", "auto"},
		{"sampled plain", ", temperature: 0.8", "builtin:gopher-15m-dspark", "off"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"job.yaml": fmt.Sprintf(killJob, way.sampling, way.drafter, way.mode), "rows.jsonl": killRows()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		started := time.Now()
		tfbatch(t, dir, "whole", 0)
		whole := time.Since(started)
		for round := 0; killed < *kills*(i+1)/4; round++ {
			out := fmt.Sprint("cut", round)
			for range 1 + random.IntN(2) { // a second kill hits the run that goes on
				tfbatch(t, dir, out, time.Duration(random.Int64N(int64(whole))))
				killed++
			}
			tfbatch(t, dir, out, 0)
			sameFolders(t, way.name, filepath.Join(dir, "whole", "j"), filepath.Join(dir, out, "j"))
			if t.Failed() {
				return
			}
			os.RemoveAll(filepath.Join(dir, out))
		}
	}
	t.Logf("%d runs killed", killed)
}

// tfbatch runs the job, and kills it after a while unless that is 0.
func tfbatch(t *testing.T, dir, out string, after time.Duration) {
	t.Helper()
	c := exec.Command("tfbatch", "run", "job.yaml", "--out", out, "--quiet", "--lanes", "3")
	c.Dir = dir
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		time.Sleep(after)
		_ = c.Process.Kill() // it may have ended before
	}
	err := c.Wait()
	// The error row is more than the job allows, which is not what is tested.
	status, _ := c.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && !(after > 0 && status.Signaled()) && c.ProcessState.ExitCode() != exitRowError {
		t.Fatalf("%v: %s", err, stderr.String())
	}
}

// sameFolders compares the files of two finished jobs, but for what is volatile in the manifest.
func sameFolders(t *testing.T, what, want, got string) {
	t.Helper()
	entries, err := os.ReadDir(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "rows.jsonl" && name != "errors.jsonl" && name != "manifest.json" && name != "journal.log" && name != "metrics.jsonl" {
			t.Errorf("%s: %s is left behind", what, name)
		}
	}
	for _, name := range []string{"rows.jsonl", "errors.jsonl", "manifest.json"} {
		w, g := read(t, filepath.Join(want, name)), read(t, filepath.Join(got, name))
		if name == "manifest.json" {
			w, _, _ = strings.Cut(w, `"volatile"`)
			g, _, _ = strings.Cut(g, `"volatile"`)
		}
		if w != g {
			t.Errorf("%s: %s differs:\n%s\nwant\n%s", what, name, g, w)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSignalsOfARun asks a run how far it is, refuses a second one in its folder, and hangs up.
func TestSignalsOfARun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"job.yaml":   "version: 1\njobs:\n  - { name: j, model: builtin:gopher-15m, input: { path: rows.jsonl }, sampling: { max_tokens: 4 } }\n",
		"rows.jsonl": strings.Repeat("{\"prompt\":\"x\"}\n", 3000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("tfbatch", "run", "job.yaml", "--out", "out", "--lanes", "1")
	c.Dir = dir
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitRows(t, c, filepath.Join(dir, "out", "j", "journal.log"), 5)

	second := exec.Command("tfbatch", "run", "job.yaml", "--out", "out")
	second.Dir = dir
	text, _ := second.CombinedOutput()
	want := fmt.Sprintf("tfbatch: job j: out/j/lock: another run has this folder: pid %d\n", c.Process.Pid)
	if second.ProcessState.ExitCode() != exitRefused || string(text) != want {
		t.Errorf("second run: code %d, %q; want %q", second.ProcessState.ExitCode(), text, want)
	}
	signalled(t, c, syscall.SIGUSR1)
	waitRows(t, c, filepath.Join(dir, "out", "j", "journal.log"), 50)
	signalled(t, c, syscall.SIGHUP)
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitSignal+int(syscall.SIGHUP) {
		t.Errorf("exit code %d, want %d", code, exitSignal+int(syscall.SIGHUP))
	}
	if line := regexp.MustCompile(`(?m)^tfbatch: j: \d+/3000 rows, 0 errors, \d+ tokens/s, [01] running.*$`); !line.Match(stderr.Bytes()) {
		t.Errorf("no status line:\n%s", stderr.String())
	}
}

func signalled(t *testing.T, c *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waitRows waits until so many rows are in a journal.
func waitRows(t *testing.T, c *exec.Cmd, path string, rows int) {
	t.Helper()
	for range 4000 {
		if data, err := os.ReadFile(path); err == nil && bytes.Count(data, []byte(`"custom_id":`)) >= rows {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = c.Process.Kill()
	t.Fatalf("%s has fewer than %d rows", path, rows)
}
