package kernels

// Add is dst = a + b over n values.
func Add(dst, a, b Span, n int) Launch {
	return launchAdd(&kAdd, flat(n), a, b, dst, addArgs{N: uint32(n)})
}

// Bias adds b [cols] to each of rows rows of x.
func Bias(x, b Span, rows, cols int) Launch {
	return launchBias(&kBias, flat(rows*cols), b, x, biasArgs{N: uint32(rows * cols), Cols: uint32(cols)})
}

// SwiGLU is dst [rows, width] from gu [rows, 2·width].
func SwiGLU(dst, gu Span, rows, width int) Launch {
	return launchSwiglu(&kSwiglu, flat(rows*width), gu, dst, swigluArgs{N: uint32(rows * width), Width: uint32(width)})
}

// Gather sets dst[i] = src[rows[i]] for n rows of cols values; rows holds 32-bit indexes.
func Gather(dst, src, rows Span, n, cols int) Launch {
	return launchGather(&kGather, flat(n*cols), src, rows, dst, gatherArgs{N: uint32(n * cols), Cols: uint32(cols)})
}

// Tap copies src [rows, cols] to the columns from at of dst [rows, stride].
func Tap(dst, src Span, rows, cols, stride, at int) Launch {
	args := tapArgs{N: uint32(rows * cols), Cols: uint32(cols), Stride: uint32(stride), At: uint32(at)}
	return launchTap(&kTap, flat(rows*cols), src, dst, args)
}
