package pattern

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

// escape reads what follows a backslash outside a class.
func (p *parser) escape() *node {
	switch {
	case p.take("A"):
		return &node{op: opStart}
	case p.take("z"):
		return &node{op: opEnd}
	case p.take("w"):
		return &node{op: opSet, set: ucd.Union(p.word(), wordLatin)}
	case p.take("W"):
		return &node{op: opSet, set: ucd.Union(p.word(), wordLatin).Complement()}
	}
	set, one := p.escapedSet()
	if one {
		return p.literal(set[0].Lo)
	}
	return &node{op: opSet, set: set}
}

// literal is the code point c, with its other cases under (?i:...).
func (p *parser) literal(c rune) *node {
	n := &node{op: opSet, set: ucd.Ranges{{Lo: c, Hi: c}}}
	if !p.fold {
		return n
	}
	if c >= utf8.RuneSelf {
		p.fail("%q under (?i:) is not supported: only ASCII is", c)
	}
	n.set = folded(n.set)
	if isAlnum(c) {
		n.letter = c | 0x20
	}
	return n
}

// escapedSet reads what follows a backslash; one tells a single code point from a class.
func (p *parser) escapedSet() (set ucd.Ranges, one bool) {
	c := p.next()
	if i := strings.IndexRune("tnrfvae", c); i >= 0 {
		c = rune("\t\n\r\f\v\a\x1b"[i])
		return ucd.Ranges{{Lo: c, Hi: c}}, true
	}
	switch c {
	case 'd', 'D':
		return p.named("Nd", c == 'D'), false
	case 's', 'S':
		return p.named("White_Space", c == 'S'), false
	case 'w', 'W':
		return signed(p.word(), c == 'W'), false
	case 'p', 'P':
		return p.property(c == 'P'), false
	case 'x', 'u':
		c = p.hex(c)
		return ucd.Ranges{{Lo: c, Hi: c}}, true
	}
	if c >= utf8.RuneSelf || c == '_' || c <= ' ' || isAlnum(c) {
		p.fail(`escape \%c is not supported`, c)
	}
	return ucd.Ranges{{Lo: c, Hi: c}}, true
}

func isAlnum(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func (p *parser) named(class string, not bool) ucd.Ranges {
	set, ok := p.classes[class]
	if !ok {
		var err error
		if set, err = ucd.Class(class); err != nil {
			p.fail("%v", err)
		}
		p.classes[class] = set
	}
	return signed(set, not)
}

// property reads {L}, {^Lu} or {Han} after \p.
func (p *parser) property(not bool) ucd.Ranges {
	name, _, ok := strings.Cut(p.rest(), "}")
	if !ok || !p.take("{") {
		p.fail(`\p needs a name in braces`)
	}
	name = name[1:]
	if p.fold {
		p.fail(`\p{%s} under (?i:) is not supported`, name)
	}
	class, caret := strings.CutPrefix(name, "^")
	if class == "White_Space" || class == "Alphabetic" {
		p.fail("character class %q is not known", class)
	}
	set := p.named(class, not != caret)
	p.at += len(name) + 1
	return set
}

// hex reads \xHH, \x{H...} or \uHHHH after its letter.
func (p *parser) hex(letter rune) rune {
	width, last, past := 2, rune(utf8.RuneSelf-1), 0 // \x80 and up are raw bytes
	if letter == 'u' {
		width, last = 4, utf8.MaxRune
	}
	if letter == 'x' && p.take("{") {
		width, last, past = strings.IndexByte(p.rest(), '}'), utf8.MaxRune, 1
	}
	if width < 0 || len(p.rest()) < width {
		p.fail(`\%c is not complete`, letter)
	}
	digits := p.rest()[:width]
	v, err := strconv.ParseUint(digits, 16, 31)
	if err != nil || rune(v) > last || !utf8.ValidRune(rune(v)) {
		p.fail(`\%c%.8s is not a code point`, letter, digits)
	}
	p.at += width + past
	return rune(v)
}
