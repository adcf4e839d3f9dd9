package main

import "os"

// statusSignals are none.
var statusSignals []os.Signal
