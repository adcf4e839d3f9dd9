//go:build unix

package main

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFirstSignalEndsAdmission sends two signals to this process.
func TestFirstSignalEndsAdmission(t *testing.T) {
	var stderr bytes.Buffer
	run, stop := watchSignals(t.Context(), time.Hour, &stderr)
	raise(t)
	<-stop.admit.Done()
	if run.Err() != nil {
		t.Error("the first signal cancelled the run")
	}
	raise(t)
	<-run.Done()
	stop.close()
	if got, want := stop.code(), 128+int(syscall.SIGTERM); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
	if !strings.Contains(stderr.String(), "running rows may finish for 1h0m0s") {
		t.Errorf("stderr: %s", stderr.String())
	}
}

func TestGraceEnds(t *testing.T) {
	run, stop := watchSignals(t.Context(), time.Nanosecond, io.Discard)
	raise(t)
	<-run.Done()
	stop.close()
}

func TestNoSignalNoCode(t *testing.T) {
	run, stop := watchSignals(t.Context(), time.Hour, io.Discard)
	stop.close()
	if stop.code() != 0 || run.Err() == nil {
		t.Errorf("code %d, run error %v; want 0 and a cancelled context", stop.code(), run.Err())
	}
}

func raise(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}
