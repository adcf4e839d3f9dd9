package engine

// philox is Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC11): a counter and a key to four random words, with no state between calls.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	const (
		m0, m1 = 0xd2511f53, 0xcd9e8d57
		w0, w1 = 0x9e3779b9, 0xbb67ae85
		rounds = 10
	)
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	k0, k1 := k[0], k[1]
	for range rounds {
		p0, p1 := m0*uint64(c0), m1*uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += w0
		k1 += w1
	}
	return [4]uint32{c0, c1, c2, c3}
}
