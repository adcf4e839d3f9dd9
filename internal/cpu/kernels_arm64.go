package cpu

import "golang.org/x/sys/cpu"

// available lists the kernels that this machine can run, the fastest first. NEON is part of
// every arm64, its products of bytes are not.
func available() []*kernels {
	k := neon()
	if !cpu.ARM64.HasASIMDDP {
		plain := portable()
		k.dot, k.dotPeak = plain.dot, plain.dotPeak
	}
	return []*kernels{k, portable()}
}
