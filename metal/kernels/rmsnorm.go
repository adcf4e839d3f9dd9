package kernels

// RMSNorm normalises runs runs of n values of x. dst may be x.
func RMSNorm(dst, x, gain Span, runs, n int, eps float32) Launch {
	args := rmsnormArgs{Runs: uint32(runs), N: uint32(n), Eps: eps}
	return launchRmsnorm(&kRmsnorm, [3]uint32{uint32(runs), 1, 1}, gain, x, dst, args)
}
