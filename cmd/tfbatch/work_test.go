//go:build unix

package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var fleetKills = flag.Int("fleet-kills", 3, "how many workers and servers each fleet of TestFleetIsKilled loses")

// fleet is workers on one queue.
type fleet struct {
	t      *testing.T
	dir    string
	listen string
	server *exec.Cmd
	shared bool // one --out for all workers
	work   []*exec.Cmd
	stderr []*bytes.Buffer
}

// serve starts the server, on the same port each time.
func (f *fleet) serve() {
	f.t.Helper()
	f.server = exec.Command("tfbatch", "queue", "--store", "store", "--listen", f.listen)
	f.server.Dir = f.dir
	f.server.Stderr = os.Stderr
	out, err := f.server.StdoutPipe()
	if err == nil {
		err = f.server.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	f.listen = strings.TrimPrefix(strings.TrimSpace(line), "nats://")
}

func (f *fleet) out(i int) string {
	if f.shared {
		return "out"
	}
	return fmt.Sprint("out", i)
}

// start begins worker i, or begins it again.
func (f *fleet) start(i int) {
	f.t.Helper()
	c := exec.Command("tfbatch", "work", "job.yaml", "--queue", "nats://"+f.listen, "--shards", "9", "--lease", "1s", "--out", f.out(i), "--threads", "1", "--lanes", "2")
	c.Dir = f.dir
	f.stderr[i].Reset()
	c.Stderr = f.stderr[i]
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.work[i] = c
}

// TestFleetIsKilled has workers share a job while some of them, and the server, are killed and started again: what merge
// makes of the shards is what one run gives, byte for byte.
func TestFleetIsKilled(t *testing.T) {
	whole := t.TempDir()
	for name, text := range map[string]string{"job.yaml": fmt.Sprintf(killJob, ", temperature: 0.8", "builtin:gopher-15m-dspark", "fixed:3"), "rows.jsonl": killRows()} {
		if err := os.WriteFile(filepath.Join(whole, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tfbatch(t, whole, "whole", 0)
	for _, one := range []struct {
		workers int
		shared  bool
	}{{2, true}, {4, false}} {
		t.Run(fmt.Sprintf("%d workers, shared %v", one.workers, one.shared), func(t *testing.T) {
			f := &fleet{t: t, dir: t.TempDir(), listen: "0", shared: one.shared, work: make([]*exec.Cmd, one.workers)}
			for range one.workers {
				f.stderr = append(f.stderr, &bytes.Buffer{})
			}
			if err := os.CopyFS(f.dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			f.run(*fleetKills)
			f.merge()
			sameFolders(t, t.Name(), filepath.Join(f.dir, "whole", "j"), filepath.Join(f.dir, "merged", "j"))
		})
	}
}

// run kills so many processes, and waits for the end of those that are left.
func (f *fleet) run(kills int) {
	seed := uint64(time.Now().UnixNano())
	f.t.Logf("random seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f.serve()
	defer func() { _ = f.server.Process.Kill(); _ = f.server.Wait() }()
	for i := range f.work {
		f.start(i)
	}
	servers := 0
	for k := range kills {
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		if k%3 == 1 {
			_ = f.server.Process.Kill()
			_ = f.server.Wait()
			f.serve()
			servers++
			continue
		}
		i := random.IntN(len(f.work))
		_ = f.work[i].Process.Kill() // it may have ended before
		_ = f.work[i].Wait()
		f.start(i)
	}
	for i, c := range f.work {
		err := c.Wait() // the error row is more than the job allows, which is not what is tested
		if code := c.ProcessState.ExitCode(); code != exitOK && code != exitRowError {
			f.t.Fatalf("worker %d: %v: %s", i, err, f.stderr[i])
		}
	}
	f.t.Logf("%d killed, %d of them servers", kills, servers)
}

// merge takes one folder of each shard that is finished. Those of killed workers are left.
func (f *fleet) merge() {
	f.t.Helper()
	args := []string{"merge", "--out", "merged"}
	for i := 1; i <= 9; i++ {
		args = append(args, f.finished(i))
	}
	c := exec.Command("tfbatch", args...)
	c.Dir = f.dir
	if text, err := c.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
}

func (f *fleet) finished(shard int) string {
	f.t.Helper()
	found, err := filepath.Glob(filepath.Join(f.dir, "out*", fmt.Sprintf("j.shard-%d-of-9", shard)))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, dir := range found {
		if strings.Contains(read(f.t, filepath.Join(dir, "journal.log")), `{"shard":{"index":`) {
			return dir
		}
	}
	f.t.Fatalf("shard %d is finished nowhere of %v", shard, found)
	return ""
}
