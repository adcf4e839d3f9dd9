package grammar

import "unicode/utf8"

// The last code point of each length of UTF-8 but the longest, and those that it leaves out.
var lastOfLength = [...]rune{0x7F, 0x7FF, 0xFFFF}

const (
	firstSurrogate = 0xD800
	lastSurrogate  = 0xDFFF
)

// runes is one code point from lo to hi, in UTF-8.
func (p *pool) runes(lo, hi rune) expr {
	if lo > hi {
		return never
	}
	if lo <= lastSurrogate && hi >= firstSurrogate {
		return p.alt(p.runes(lo, firstSurrogate-1), p.runes(lastSurrogate+1, hi))
	}
	for _, last := range lastOfLength {
		if lo <= last && last < hi {
			return p.alt(p.runes(lo, last), p.runes(last+1, hi))
		}
	}
	if cut, ok := ragged(lo, hi); ok {
		return p.alt(p.runes(lo, cut), p.runes(cut+1, hi))
	}
	from, to := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	all := nothing
	for i := len(from) - 1; i >= 0; i-- {
		all = p.then(p.bytes(span(from[i], to[i])), all)
	}
	return all
}

// ragged finds where to cut lo to hi, of one length, until the bytes behind the first that differs run over
// all their values.
func ragged(lo, hi rune) (cut rune, ok bool) {
	if hi <= lastOfLength[0] {
		return 0, false
	}
	for bits := 6; bits <= 18; bits += 6 {
		low := rune(1)<<bits - 1
		switch {
		case lo&^low == hi&^low:
			return 0, false
		case lo&low != 0:
			return lo | low, true
		case hi&low != low:
			return hi&^low - 1, true
		}
	}
	return 0, false
}
