package cpu

// available lists the kernels that this machine can run, the fastest first. NEON is part of
// every arm64.
func available() []*kernels { return []*kernels{neon(), portable()} }
