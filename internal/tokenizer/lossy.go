package tokenizer

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// lossy turns bytes into text as Rust's String::from_utf8_lossy does: each longest start of
// a code point that cannot be completed is one U+FFFD (Unicode 16.0, section 3.9, "maximal
// subparts"). Go's own conversions write one for each byte.
type lossy struct {
	pending []byte // the start of a code point
}

// push gives the text that is certain after more bytes.
func (l *lossy) push(more string) string {
	if len(l.pending) == 0 && utf8.ValidString(more) {
		return more
	}
	var out strings.Builder
	b := append(l.pending, more...)
	for len(b) > 0 {
		n, state := start(b)
		if state == cut {
			break
		}
		if state == bad {
			out.WriteString(replacement)
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	l.pending = append(l.pending[:0], b...)
	return out.String()
}

// flush gives what stands for the bytes left over.
func (l *lossy) flush() string {
	if len(l.pending) == 0 {
		return ""
	}
	l.pending = l.pending[:0]
	return replacement
}

// validText is text with its invalid bytes replaced.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var l lossy
	return l.push(text) + l.flush()
}

type state uint8

const (
	whole state = iota // a code point
	bad                // cannot become one
	cut                // a code point up to where the bytes end
)

// start judges the first bytes of b, which is not empty: n of them belong together.
func start(b []byte) (n int, s state) {
	size, low, high := 1, byte(0x80), byte(0xBF) // low, high: bounds of the second byte
	switch c := b[0]; {
	case c < 0x80:
		return 1, whole
	case c < 0xC2 || c > 0xF4:
		return 1, bad
	case c < 0xE0:
		size = 2
	case c < 0xF0:
		size = 3
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	default:
		size = 4
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	for n = 1; n < size; n++ {
		if n == len(b) {
			return n, cut
		}
		if b[n] < low || b[n] > high {
			return n, bad
		}
		low, high = 0x80, 0xBF
	}
	return size, whole
}
