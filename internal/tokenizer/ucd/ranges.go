package ucd

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Range is the code points Lo to Hi, both included.
type Range struct{ Lo, Hi rune }

// Ranges is a set of code points: ascending, neither overlapping nor touching.
type Ranges []Range

// Union joins any ranges, in any order, to a proper set.
func Union(sets ...[]Range) Ranges {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return Ranges(out)
}

// Complement is every code point that is not in r.
func (r Ranges) Complement() Ranges {
	var out Ranges
	next := rune(0)
	for _, x := range r {
		if next < x.Lo {
			out = append(out, Range{next, x.Lo - 1})
		}
		next = x.Hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, Range{next, utf8.MaxRune})
	}
	return out
}

// Intersect is what r and s share.
func (r Ranges) Intersect(s Ranges) Ranges {
	return Union(r.Complement(), s.Complement()).Complement()
}

// pageBits is the size of a page of a Set: 256 code points share one, which keeps the
// sets of real patterns at 10 to 20 KB and a test at two loads.
const pageBits = 8

type page [1 << pageBits / 64]uint64

// Set answers membership in constant time. The zero value is empty; it is read-only after NewSet.
type Set struct {
	pages []page
	index [(utf8.MaxRune + 1) >> pageBits]uint16
}

// NewSet builds the lookup for r.
func NewSet(r Ranges) *Set {
	s := &Set{pages: make([]page, 1)}
	seen := map[page]uint16{{}: 0}
	rest := r
	for i := range s.index {
		lo, hi := rune(i)<<pageBits, rune(i+1)<<pageBits-1
		var p page
		for len(rest) > 0 && rest[0].Lo <= hi {
			for c := max(rest[0].Lo, lo); c <= min(rest[0].Hi, hi); c++ {
				p[(c-lo)>>6] |= 1 << (uint(c-lo) & 63)
			}
			if rest[0].Hi > hi {
				break
			}
			rest = rest[1:]
		}
		at, ok := seen[p]
		if !ok {
			at = uint16(len(s.pages))
			seen[p] = at
			s.pages = append(s.pages, p)
		}
		s.index[i] = at
	}
	return s
}

// Has reports whether c, a valid code point, is in the set.
func (s *Set) Has(c rune) bool {
	p := &s.pages[s.index[c>>pageBits]]
	return p[c>>6&3]>>(uint(c)&63)&1 != 0
}
