package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// stopper is what signals do to a run: the first ends admission and lets running rows finish
// for a while, the second cancels. Either way what was written is flushed.
type stopper struct {
	admit context.Context

	got     atomic.Int32                  // the first signal, 0 before it
	line    atomic.Pointer[func() string] // how far the run is; nil: nothing runs
	signals chan os.Signal
	done    chan struct{}
	ended   chan struct{}
}

// watchSignals returns the context of the run. The caller closes the stopper.
func watchSignals(ctx context.Context, grace time.Duration, stderr io.Writer) (context.Context, *stopper) {
	run, cancel := context.WithCancel(ctx)
	admit, noMore := context.WithCancel(run)
	s := &stopper{admit: admit, signals: make(chan os.Signal, 2), done: make(chan struct{}), ended: make(chan struct{})}
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader of stdout or stderr that goes away must not end a job: its write fails, and that is said at the end.
	signal.Ignore(syscall.SIGPIPE)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, statusSignals...)
	go s.answer(asked, stderr)
	go func() {
		defer close(s.ended)
		defer cancel()
		defer noMore()
		if !s.wait(nil) {
			return
		}
		fmt.Fprintf(stderr, "tfbatch: stopping; running rows may finish for %v, a second interrupt drops them\n", grace)
		noMore()
		s.wait(time.After(grace))
		cancel()
		<-s.done
	}()
	return run, s
}

// status sets what is printed for a status signal.
func (s *stopper) status(line func() string) {
	if line == nil {
		s.line.Store(nil)
		return
	}
	s.line.Store(&line)
}

// answer prints how far the run is whenever it is asked.
func (s *stopper) answer(asked chan os.Signal, stderr io.Writer) {
	defer signal.Stop(asked)
	for {
		select {
		case <-asked:
			text := "loading"
			if line := s.line.Load(); line != nil {
				text = (*line)()
			}
			fmt.Fprintf(stderr, "tfbatch: %s\n", text)
		case <-s.done:
			return
		}
	}
}

// wait returns true for a signal or the end of the grace, false when the run is over.
func (s *stopper) wait(grace <-chan time.Time) bool {
	select {
	case sig := <-s.signals:
		if n, ok := sig.(syscall.Signal); ok {
			s.got.CompareAndSwap(0, int32(n))
		}
		return true
	case <-grace:
		return true
	case <-s.done:
		return false
	}
}

// close ends the watch.
func (s *stopper) close() {
	signal.Stop(s.signals)
	close(s.done)
	<-s.ended
}

// code is the exit code of a run that a signal stopped, 0 when none did.
func (s *stopper) code() int {
	if n := s.got.Load(); n != 0 {
		return exitSignal + int(n)
	}
	return 0
}
