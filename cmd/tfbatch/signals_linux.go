package main

import (
	"os"
	"syscall"
)

// statusSignals ask how far a run is.
var statusSignals = []os.Signal{syscall.SIGUSR1}
