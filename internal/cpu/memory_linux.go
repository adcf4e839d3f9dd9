package cpu

import "golang.org/x/sys/unix"

// adviseHuge asks for 2 MiB pages: a matrix is read from end to end, and with small pages
// the translation misses cost a tenth of the bandwidth. A kernel without them says no, which is fine.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
