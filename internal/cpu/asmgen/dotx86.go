package main

// dotFormat is VPDPBUSD of AVX-512, which adds four products of bytes to an integer; AVX2 has two that
// it adds in 16 bits, which is enough for the codes of 4 bits of 32 inputs, and with codes of 8 bits for none.
func (x x86) dotFormat(f *file, bits int) dotFormat {
	switch {
	case bits == 4 && x.wide:
		d := dotFormat{weightFormat: nibbles(1), layout: "byParity", add: x.dotBytes}
		return d
	case bits == 4:
		return dotFormat{weightFormat: x.pooledNibbles(), layout: "byParity", add: x.dotShort, short: true, settle: x.settle, wait: x.wait, spares: true}
	case x.wide:
		return dotFormat{weightFormat: wholeBytes(), layout: "byFours", add: x.dotBytes}
	}
	return dotFormat{weightFormat: x.evenAndOdd(), layout: "byPairs", add: x.dotPairs, spares: true}
}

// nibbles are words of eight codes of 4 bits: the even ones, then the odd ones.
func nibbles(wordsOfTurn int) weightFormat {
	return weightFormat{
		inputs: 2 * wordsOfTurn, bytes: wordsOfTurn * vecBytes,
		extra: func(f *fn) vec { return f.splats(0x0f0f0f0f)[0] },
		widen: func(f *fn, d vec, m mem, j int, mask vec) {
			f.load(f, d, m.plus(j/2*vecBytes))
			if j%2 == 1 {
				f.shiftRight(f, d, d, 4)
			}
			f.and(f, d, d, mask)
		},
	}
}

// pooledNibbles are those of 32 inputs, with the mask in memory.
func (x x86) pooledNibbles() weightFormat {
	w := nibbles(4)
	w.extra = func(f *fn) vec { return f.pooledBits(0x0f0f0f0f) }
	return w
}

// wholeBytes are words of four codes of 8 bits.
func wholeBytes() weightFormat {
	return weightFormat{inputs: 2, bytes: 2 * vecBytes, widen: func(f *fn, d vec, m mem, j int, _ vec) {
		f.load(f, d, m.plus(j*vecBytes))
	}}
}

// evenAndOdd are words of four codes of 8 bits, as pairs of 16 bits: the even ones, then the odd ones.
func (x x86) evenAndOdd() weightFormat {
	return weightFormat{
		inputs: 2, bytes: vecBytes,
		extra: func(f *fn) vec { return f.pooledBits(0x00ff00ff) },
		widen: func(f *fn, d vec, m mem, j int, mask vec) {
			f.load(f, d, m)
			if j == 0 {
				f.and(f, d, d, mask)
				return
			}
			for _, r := range d {
				f.ins("VPSRLW $8, %s, %s", x.r(r), x.r(r))
			}
		},
	}
}

func (x x86) dotBytes(f *fn, sum, w, in, _ vec, _ int) { x.three(f, "VPDPBUSD", sum, w, in) }

// dotShort adds in 16 bits, starting anew with the first word of a turn.
func (x x86) dotShort(f *fn, sum, w, in, spare vec, j int) {
	if j == 0 {
		x.three(f, "VPMADDUBSW", sum, w, in)
		return
	}
	for i := range sum {
		f.ins("VPMADDUBSW %s, %s, %s", x.r(in[i]), x.r(w[i]), x.r(spare[i]))
		f.ins("VPADDW %s, %s, %s", x.r(spare[i]), x.r(sum[i]), x.r(sum[i]))
	}
}

// settle adds the two sums of 16 bits of every output.
func (x x86) settle(f *fn, sum vec) { x.three(f, "VPMADDWD", sum, sum, f.pooledBits(0x00010001)) }

func (x x86) wait(f *fn, sum vec, m mem) {
	for i, r := range sum {
		f.ins("VPADDD %s, %s, %s", m.plus(i*x.bytes()).x86(), x.r(r), x.r(r))
	}
}

func (x x86) dotPairs(f *fn, sum, w, in, spare vec, _ int) {
	for i := range sum {
		f.ins("VPMADDWD %s, %s, %s", x.r(in[i]), x.r(w[i]), x.r(spare[i]))
		f.ins("VPADDD %s, %s, %s", x.r(spare[i]), x.r(sum[i]), x.r(sum[i]))
	}
}

func (x x86) signedToFloat(f *fn, d, s vec)  { x.toFloat(f, d, s) }
func (x x86) maxInt(f *fn, d, a, b vec)      { x.three(f, "VPMAXUD", d, a, b) }
func (x x86) largestInt(f *fn, d, spare vec) { x.across(f, "VPMAXUD", d, spare) }
