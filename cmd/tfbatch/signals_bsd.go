//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"
	"syscall"
)

// statusSignals ask how far a run is; SIGINFO is Ctrl-T on a terminal.
var statusSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGINFO}
