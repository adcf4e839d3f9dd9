package kernels

// MaxExperts is the most experts that the kernels choose from.
const MaxExperts = 1024

// Choice is how experts are chosen; see backend.Router.
type Choice struct {
	Experts, Top       int
	Softmax, Normalize bool
	Scale              float32
}

// Route writes ids and weights [rows, Top] from logits [rows, Experts]. bias may be empty.
func Route(ids, weights, logits, bias Span, rows int, c Choice) Launch {
	return launchRoute(&kRoute, [3]uint32{uint32(rows), 1, 1}, logits, bias, ids, weights, routeArgs{
		Experts: uint32(c.Experts), Top: uint32(c.Top), HasBias: flag(bias.Mem != nil), Softmax: flag(c.Softmax), Normalize: flag(c.Normalize), Scale: c.Scale,
	})
}

// Combine sums the expert outputs y [rows·top, cols] by weight.
func Combine(dst, y, weights Span, rows, cols, top int) Launch {
	return launchCombine(&kCombine, flat(rows*cols), y, weights, dst, combineArgs{N: uint32(rows * cols), Cols: uint32(cols), Top: uint32(top)})
}
