package main

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupLimit is where a container finds what it may use, in version 2 of control groups.
const cgroupLimit = "/sys/fs/cgroup/memory.max"

// totalMemory is the memory that this process can hope for, in bytes; 0 is not known.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(info.Totalram) * int64(info.Unit)
	text, err := os.ReadFile(cgroupLimit)
	if err != nil {
		return total
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max"
		return total
	}
	return min(total, limit)
}

// residentMemory is how many bytes of this process are in memory; 0 is not known.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm") // pages: all, resident, …
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
