package grammar

import "encoding/binary"

// set is a set of bytes, a bit each.
type set [4]uint64

// span is the bytes from lo to hi.
func span(lo, hi byte) (s set) {
	for b := int(lo); b <= int(hi); b++ {
		s[b/64] |= 1 << (b % 64)
	}
	return s
}

func (s set) has(b byte) bool { return s[b/64]>>(b%64)&1 == 1 }

func (s set) or(t set) set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s set) append(key []byte) []byte {
	for _, w := range s {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	return key
}
