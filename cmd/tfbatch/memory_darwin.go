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
