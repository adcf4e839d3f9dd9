package tokenizer

import "strings"

// GPT-2 writes tokens of arbitrary bytes in JSON by giving each byte a printable character:
// itself where it is one in Latin-1, else the next from U+0100 on.

// printable reports whether byte b stands for itself.
func printable(b byte) bool {
	return '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || b >= 0xAE
}

// Bytes that are not printable, in order: 0x00 to 0x20, 0x7F to 0xA0, 0xAD.
const (
	lastControl = 0x20
	firstDelete = 0x7F
	lastNBSP    = 0xA0
	softHyphen  = 0xAD
	controls    = lastControl + 1
	deletes     = lastNBSP - firstDelete + 1
)

// letter is the character for byte b.
func letter(b byte) rune {
	switch {
	case printable(b):
		return rune(b)
	case b <= lastControl:
		return 0x100 + rune(b)
	case b == softHyphen:
		return 0x100 + controls + deletes
	}
	return 0x100 + controls + rune(b) - firstDelete
}

// unletter is the inverse of letter; ok is false for other characters.
func unletter(c rune) (b byte, ok bool) {
	switch i := c - 0x100; {
	case i < 0:
		return byte(c), printable(byte(c))
	case i < controls:
		return byte(i), true
	case i < controls+deletes:
		return byte(i - controls + firstDelete), true
	case i == controls+deletes:
		return softHyphen, true
	}
	return 0, false
}

// spell writes the bytes of s in letters.
func spell(s string) string {
	var out strings.Builder
	out.Grow(2 * len(s))
	for i := range len(s) {
		out.WriteRune(letter(s[i]))
	}
	return out.String()
}

// unspell is the inverse of spell; ok is false when a character is no letter.
func unspell(s string) (bytes string, ok bool) {
	out := make([]byte, 0, len(s))
	for _, c := range s {
		b, ok := unletter(c)
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}
