package cpu

import "golang.org/x/sys/cpu"

// available lists the kernels that this machine can run, the fastest first.
func available() []*kernels {
	var all []*kernels
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
		all = append(all, withDots(avx512(), x.HasAVX512VNNI))
	}
	if x.HasAVX2 && x.HasFMA { // F16C is older than both
		all = append(all, avx2())
	}
	return append(all, portable())
}

// withDots is k, with the products of AVX2 for i8-v1 where the machine is older than those of k.
func withDots(k *kernels, have bool) *kernels {
	if !have {
		older := avx2()
		k.dot, k.dotPeak = older.dot, older.dotPeak
	}
	return k
}
