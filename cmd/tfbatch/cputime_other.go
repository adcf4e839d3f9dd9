//go:build !linux && !darwin

package main

import "time"

// processTime is not known here: a trial of no time is refused by the gate.
func processTime() time.Duration { return 0 }
