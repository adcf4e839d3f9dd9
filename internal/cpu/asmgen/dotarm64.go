package main

// dotFormat is SDOT of Armv8.2, which takes signed bytes: codes of 8 bits are first centred on zero.
func (n neon) dotFormat(f *file, bits int) dotFormat {
	if bits == 4 {
		return dotFormat{weightFormat: nibbles(1), layout: "byParity", add: n.dotBytes}
	}
	w := wholeBytes()
	load := w.widen
	w.extra = func(f *fn) vec { return f.splats(0x80808080)[0] }
	w.widen = func(f *fn, d vec, m mem, j int, high vec) {
		load(f, d, m, j, nil)
		for i := range d {
			f.ins("VEOR V%d.B16, V%d.B16, V%d.B16", high[i], d[i], d[i])
		}
	}
	return dotFormat{weightFormat: w, layout: centred, add: n.dotBytes}
}

func (n neon) dotBytes(f *fn, sum, w, in, _ vec, _ int) {
	n.three(f, "sdot", 0x4e809400, sum, w, in)
}

func (n neon) signedToFloat(f *fn, d, s vec) { n.two(f, "scvtf", 0x4e21d800, d, s) }
func (n neon) maxInt(f *fn, d, a, b vec)     { n.three(f, "umax", 0x6ea06400, d, a, b) }

func (n neon) largestInt(f *fn, d, _ vec) {
	for _, r := range d[1:] {
		n.word(f, "umax", 0x6ea06400, d[0], d[0], r)
	}
	n.word(f, "umaxv", 0x6eb0a800, d[0], d[0], 0)
}
