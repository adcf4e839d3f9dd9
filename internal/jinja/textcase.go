package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// caseMethods change or ask for letter case, and ask what a string is made of.
func caseMethods() []*function {
	change := func(name string, to func(string) string) *function {
		return onText(name, func(r *run, s string) (Value, error) { return str(to(s)), r.alloc(len(s)) })
	}
	ask := func(name string, is func(string) bool) *function {
		return onText(name, func(r *run, s string) (Value, error) { return boolean(is(s)), r.scan(len(s)) })
	}
	return []*function{
		change("upper", upperCase),
		change("lower", lowerCase),
		change("title", titleCase),
		change("capitalize", capitalCase),
		change("casefold", func(s string) string { return cases.Fold().String(s) }),
		change("swapcase", swapCase),
		ask("isupper", isUpper),
		ask("islower", isLower),
		ask("istitle", isTitle),
		ask("isspace", all(isSpace)),
		ask("isalpha", all(unicode.IsLetter)),
		ask("isalnum", all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })),
		ask("isdecimal", all(unicode.IsDigit)),
		ask("isdigit", all(isDigitRune)),
		ask("isnumeric", all(isNumeric)),
		ask("isascii", func(s string) bool {
			return strings.IndexFunc(s, func(c rune) bool { return c > unicode.MaxASCII }) < 0
		}),
		ask("isprintable", func(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0 }),
	}
}

// all reports a string that is not empty and made of such code points only.
func all(is func(rune) bool) func(string) bool {
	return func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
	}
}

// isDigitRune is Unicode's digit property: decimal digits, and those in circles, raised or lowered.
func isDigitRune(c rune) bool {
	switch {
	case unicode.IsDigit(c), c == 0xb2, c == 0xb3, c == 0xb9, c >= 0x1369 && c <= 0x1371, c == 0x19da,
		c == 0x2070, c >= 0x2074 && c <= 0x2079, c >= 0x2080 && c <= 0x2089, c >= 0x2460 && c <= 0x2468,
		c >= 0x2474 && c <= 0x247c, c >= 0x2488 && c <= 0x2490, c == 0x24ea, c >= 0x24f5 && c <= 0x24fd,
		c == 0x24ff, c >= 0x2776 && c <= 0x277e, c >= 0x2780 && c <= 0x2788, c >= 0x278a && c <= 0x2792,
		c >= 0x10a40 && c <= 0x10a43, c >= 0x10e60 && c <= 0x10e68, c >= 0x11052 && c <= 0x1105a,
		c >= 0x1f100 && c <= 0x1f10a:
		return true
	}
	return false
}

// isNumeric adds the Han characters that stand for numbers.
func isNumeric(c rune) bool {
	return unicode.IsNumber(c) || strings.ContainsRune("〇一二三四五六七八九十百千万億兆零壹贰叁肆伍陆柒捌玖拾佰仟两", c)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// upperCase and lowerCase map as Unicode does in full: ß becomes SS, a final Σ becomes ς.
func upperCase(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lowerCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

// titleRune is the title case of one code point, which may be several.
func titleRune(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToUpper(c))
	}
	return cases.Title(language.Und, cases.NoLower).String(string(c))
}

func capitalCase(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return titleRune(c) + lowerCase(s[n:])
}

func isCased(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) }

// titleCase is str.title: a letter behind no letter is a title letter.
func titleCase(s string) string {
	low := lowerCase(s)
	if len([]rune(low)) != len([]rune(s)) {
		low = strings.ToLower(s)
	}
	lowered := []rune(low)
	var out strings.Builder
	inWord := false
	for i, c := range []rune(s) {
		if inWord {
			out.WriteRune(lowered[i])
		} else {
			out.WriteString(titleRune(c))
		}
		inWord = isCased(c)
	}
	return out.String()
}

// titleWords is the title filter: a new word starts behind a space, a dash or an opening bracket.
func titleWords(s string) string {
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, func(c rune) bool { return isWordBreak(c) != isWordBreak(firstRune(s)) })
		if end < 0 {
			end = len(s)
		}
		_, n := utf8.DecodeRuneInString(s)
		out.WriteString(upperCase(s[:n]) + lowerCase(s[n:end]))
		s = s[end:]
	}
	return out.String()
}

func isWordBreak(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) }

func firstRune(s string) rune {
	c, _ := utf8.DecodeRuneInString(s)
	return c
}

func swapCase(s string) string {
	var out strings.Builder
	for _, c := range s {
		switch {
		case unicode.IsUpper(c):
			out.WriteRune(unicode.ToLower(c))
		case unicode.IsLower(c):
			out.WriteString(upperCase(string(c)))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

func isUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0 &&
		strings.IndexFunc(s, func(c rune) bool { return unicode.IsLower(c) || unicode.IsTitle(c) }) < 0
}

func isLower(s string) bool {
	return strings.IndexFunc(s, unicode.IsLower) >= 0 &&
		strings.IndexFunc(s, func(c rune) bool { return unicode.IsUpper(c) || unicode.IsTitle(c) }) < 0
}

func isTitle(s string) bool {
	cased, inWord := false, false
	for _, c := range s {
		switch {
		case unicode.IsUpper(c) || unicode.IsTitle(c):
			if inWord {
				return false
			}
			cased, inWord = true, true
		case unicode.IsLower(c):
			if !inWord {
				return false
			}
			cased = true
		default:
			inWord = false
		}
	}
	return cased
}
