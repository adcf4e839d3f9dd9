package stages

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"tfbatch/jobs"
)

// TestBlockedReadIsLeftBehind holds that a pipe that stays open does not hold up the end of a run.
func TestBlockedReadIsLeftBehind(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	admit, stop := context.WithCancel(t.Context())
	r := interruptible(admit, in)
	go out.Write([]byte("abc"))
	p := make([]byte, 2)
	if n, err := io.ReadFull(r, p); n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if n, err := r.Read(p); n != 1 || err != nil || p[0] != 'c' {
		t.Fatalf("got %d %q, %v", n, p[:n], err)
	}
	stop()
	if _, err := r.Read(p); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestStandardInputIsGoneAfterTheRun: who looks at a job later has none, and is told so.
func TestStandardInputIsGoneAfterTheRun(t *testing.T) {
	if _, err := openSource(jobs.StdinPath, nil); err == nil || !strings.Contains(err.Error(), "--input") {
		t.Errorf("got %v", err)
	}
}
