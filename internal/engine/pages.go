package engine

// pool hands out KV pages by number.
//
// A lane's pages are reserved when it is admitted, for its prompt and the longest reply
// it may give. Growing page by page would admit more lanes, but then running lanes can
// want a page when none is left, and one has to be thrown out and computed again. An
// offline job waits for nothing but the end, so it takes the simple rule: a lane that
// was admitted cannot starve.
type pool struct{ free []int32 }

func newPool(pages int) *pool {
	p := &pool{free: make([]int32, pages)}
	for i := range p.free {
		p.free[i] = int32(pages - 1 - i) // page 0 leaves first
	}
	return p
}

// take moves n free pages to dst[:0]; the caller has seen that there are n.
func (p *pool) take(dst []int32, n int) []int32 {
	at := len(p.free) - n
	dst = append(dst[:0], p.free[at:]...)
	p.free = p.free[:at]
	return dst
}

func (p *pool) give(pages []int32) { p.free = append(p.free, pages...) }
