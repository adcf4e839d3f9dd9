//go:build !linux && !darwin

package main

// totalMemory is the memory of this machine in bytes; 0 is not known.
func totalMemory() int64 { return 0 }

// residentMemory is not known here.
func residentMemory() int64 { return 0 }
