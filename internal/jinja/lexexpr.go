package jinja

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// expression reads the tokens of one tag up to its end.
func (l *lexer) expression(tag int, end tokenKind) error {
	l.open = l.open[:0]
	for {
		l.pos = l.skipSpace(l.pos)
		if l.pos >= len(l.src) {
			return nil // the parser will miss the end
		}
		if len(l.open) == 0 && l.tagEnd(end) {
			return nil
		}
		if err := l.expressionToken(); err != nil {
			return onLine(l.lineOf(l.pos), err)
		}
	}
}

// tagEnd takes the end of a tag, with the white space it trims.
func (l *lexer) tagEnd(end tokenKind) bool {
	closing := "}}"
	if end == tokBlockEnd {
		closing = "%}"
	}
	rest := l.src[l.pos:]
	var sign byte
	if rest[0] == '-' || rest[0] == '+' && end == tokBlockEnd {
		sign = rest[0]
		rest = rest[1:]
	}
	if !strings.HasPrefix(rest, closing) {
		return false
	}
	l.emit(end, "", l.pos)
	l.pos = len(l.src) - len(rest) + 2
	if sign == '-' || end == tokBlockEnd {
		l.afterTag(sign)
	}
	return true
}

var (
	floatPattern = regexp.MustCompile(`^(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?[eE][+\-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+)`)
	intPattern   = regexp.MustCompile(`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
)

func (l *lexer) expressionToken() error {
	rest := l.src[l.pos:]
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case c >= '0' && c <= '9':
		l.number(rest)
		return nil
	case c == '_' || unicode.IsLetter(c):
		n := strings.IndexFunc(rest, func(c rune) bool { return !isNameRune(c) })
		if n < 0 {
			n = len(rest)
		}
		l.take(tokName, rest[:n])
		return nil
	case c == '"' || c == '\'':
		return l.stringLiteral(rest)
	}
	for _, op := range []string{"//", "**", "==", "!=", ">=", "<="} {
		if strings.HasPrefix(rest, op) {
			l.take(tokOp, op)
			return nil
		}
	}
	if !strings.ContainsRune("+-/*%~[](){}><=.:|,;", c) {
		return fmt.Errorf("unexpected char %s", shortRepr(str(string(c))))
	}
	if err := l.balance(byte(c)); err != nil {
		return err
	}
	l.take(tokOp, rest[:1])
	return nil
}

func (l *lexer) take(kind tokenKind, text string) {
	l.emit(kind, text, l.pos)
	l.pos += len(text)
}

func isNameRune(c rune) bool {
	return c == '_' || unicode.In(c, unicode.L, unicode.N, unicode.Mn, unicode.Mc)
}

// number takes an int or a float; a float does not start behind a dot, as in x.0.1.
func (l *lexer) number(rest string) {
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		if f := floatPattern.FindString(rest); f != "" {
			l.take(tokFloat, f)
			return
		}
	}
	l.take(tokInt, intPattern.FindString(rest))
}

// balance follows the brackets, inside of which the end of a tag does not count.
func (l *lexer) balance(c byte) error {
	switch c {
	case '(':
		l.open = append(l.open, ')')
	case '[':
		l.open = append(l.open, ']')
	case '{':
		l.open = append(l.open, '}')
	case ')', ']', '}':
		if len(l.open) == 0 {
			return fmt.Errorf("unexpected '%c'", c)
		}
		want := l.open[len(l.open)-1]
		l.open = l.open[:len(l.open)-1]
		if want != c {
			return fmt.Errorf("unexpected '%c', expected '%c'", c, want)
		}
	}
	return nil
}

func (l *lexer) stringLiteral(rest string) error {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			s, err := unescape(rest[1:i])
			l.emit(tokString, s, l.pos)
			l.pos += i + 1
			return err
		}
	}
	return fmt.Errorf("unexpected char %s", shortRepr(str(rest[:1])))
}

// unescape is Python's unicode-escape codec, with \N{...} and lone surrogates refused.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(s[:i])
		n, err := unescapeOne(&out, s[i+1:])
		if err != nil {
			return "", err
		}
		s = s[i+1+n:]
	}
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b",
	'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescapeOne writes the escape whose text behind the backslash s starts with, and returns how
// many bytes of s it takes.
func unescapeOne(out *strings.Builder, s string) (int, error) {
	if simple, ok := simpleEscapes[s[0]]; ok {
		out.WriteString(simple)
		return 1, nil
	}
	switch c := s[0]; {
	case c == 'x':
		return unescapeHex(out, s, 2)
	case c == 'u':
		return unescapeHex(out, s, 4)
	case c == 'U':
		return unescapeHex(out, s, 8)
	case c == 'N':
		return 0, fmt.Errorf(`escape \N{...} is not supported`)
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		code, _ := strconv.ParseUint(s[:n], 8, 32)
		out.WriteRune(rune(code))
		return n, nil
	case c >= utf8.RuneSelf:
		// Python spells the character out in ASCII first and then finds an escaped backslash.
		c, n := utf8.DecodeRuneInString(s)
		out.WriteString(asciiEscape(c))
		return n, nil
	}
	out.WriteByte('\\')
	return 0, nil
}

func unescapeHex(out *strings.Builder, s string, digits int) (int, error) {
	if len(s) < 1+digits {
		return 0, fmt.Errorf(`truncated \%cXX escape`, s[0])
	}
	code, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil {
		return 0, fmt.Errorf(`truncated \%cXX escape`, s[0])
	}
	if !utf8.ValidRune(rune(code)) || code > unicode.MaxRune {
		return 0, fmt.Errorf(`escape \%s is no character`, s[:1+digits])
	}
	out.WriteRune(rune(code))
	return 1 + digits, nil
}

// asciiEscape is Python's backslashreplace.
func asciiEscape(c rune) string {
	switch {
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	case c < 0x10000:
		return fmt.Sprintf(`\u%04x`, c)
	}
	return fmt.Sprintf(`\U%08x`, c)
}
