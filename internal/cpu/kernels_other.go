//go:build !amd64 && !arm64

package cpu

// available lists the kernels that this machine can run, the fastest first.
func available() []*kernels { return []*kernels{portable()} }
