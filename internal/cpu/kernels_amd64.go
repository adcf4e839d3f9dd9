package cpu

import "golang.org/x/sys/cpu"

// available lists the kernels that this machine can run, the fastest first.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
		all = append(all, avx512())
	}
	if x.HasAVX2 && x.HasFMA { // F16C is older than both
		all = append(all, avx2())
	}
	return append(all, portable())
}
