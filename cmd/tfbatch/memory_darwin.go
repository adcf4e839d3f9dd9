package main

import "golang.org/x/sys/unix"

// totalMemory is the memory of this machine in bytes; 0 is not known.
func totalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// residentMemory is the most bytes that this process had in memory: what it has now is not told without cgo.
func residentMemory() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss
}
