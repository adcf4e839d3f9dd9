package pattern

import (
	"strings"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

// class reads a bracketed class after its [: ranges, escapes, nested classes, && and a leading ^.
func (p *parser) class() ucd.Ranges {
	p.enter()
	defer func() { p.depth-- }()
	not := p.take("^")
	var whole, part ucd.Ranges
	joined, empty := false, true
	for {
		switch {
		case p.take("]"):
			if empty {
				p.fail("] at the start of a class must be escaped")
			}
			if joined {
				part = whole.Intersect(part)
			}
			p.checkClass(part)
			return p.checkClass(signed(part, not))
		case p.take("&&"):
			if empty {
				p.fail("&& has nothing to its left")
			}
			if joined {
				part = whole.Intersect(part)
			}
			whole, part = part, nil
			joined, empty = true, true
		default:
			part = ucd.Union(part, p.classItem())
			empty = false
		}
	}
}

// checkClass refuses classes of nothing: Oniguruma mistakes what is not ASCII in them when
// they are nested or negated.
func (p *parser) checkClass(set ucd.Ranges) ucd.Ranges {
	if len(set) == 0 {
		p.fail("a class that holds no code point is not supported")
	}
	return set
}

// classItem reads one member of a class: a range, a code point or a set.
func (p *parser) classItem() ucd.Ranges {
	if strings.HasPrefix(p.rest(), "[:") {
		p.fail("POSIX brackets are not supported")
	}
	if p.take("[") {
		return p.class()
	}
	set, one := p.classAtom()
	if !strings.HasPrefix(p.rest(), "-") || strings.HasPrefix(p.rest(), "-]") {
		if one {
			return p.foldClass(set)
		}
		return set
	}
	if !one {
		p.fail("- after a class must be escaped")
	}
	p.at++
	high, one := p.classAtom()
	if !one || high[0].Lo < set[0].Lo {
		p.fail("range in a class ends below its start")
	}
	return p.foldClass(ucd.Ranges{{Lo: set[0].Lo, Hi: high[0].Lo}})
}

func (p *parser) classAtom() (set ucd.Ranges, one bool) {
	c := p.next()
	switch c {
	case '\\':
		return p.escapedSet()
	case '[':
		p.fail("[ inside a range must be escaped")
	case '-':
		if prev := p.expr[p.at-2]; prev != '[' && prev != '^' && !strings.HasPrefix(p.rest(), "]") {
			p.fail("- inside a class must be escaped")
		}
	}
	return ucd.Ranges{{Lo: c, Hi: c}}, true
}

func (p *parser) foldClass(set ucd.Ranges) ucd.Ranges {
	if !p.fold {
		return set
	}
	if set[0].Hi >= utf8.RuneSelf {
		p.fail("a class with %q under (?i:) is not supported: only ASCII is", set[0].Hi)
	}
	return folded(set)
}

// folded adds the other case of every ASCII letter, and the long s and Kelvin sign, which
// fold to s and k. Sets with further code points do not come here.
func folded(set ucd.Ranges) ucd.Ranges {
	out := set
	for _, r := range set {
		for c := r.Lo; c <= r.Hi; c++ {
			if isAlnum(c) && c > '9' {
				out = append(out, ucd.Range{Lo: c ^ 0x20, Hi: c ^ 0x20})
			}
			switch c | 0x20 {
			case 's':
				out = append(out, ucd.Range{Lo: 'ſ', Hi: 'ſ'})
			case 'k':
				out = append(out, ucd.Range{Lo: '\u212A', Hi: '\u212A'})
			}
		}
	}
	return ucd.Union(out)
}

func signed(set ucd.Ranges, not bool) ucd.Ranges {
	if not {
		return set.Complement()
	}
	return set
}

// word is \w in a class: what is alphabetic, marks, decimal digits and connectors.
func (p *parser) word() ucd.Ranges {
	return ucd.Union(p.named("Alphabetic", false), p.named("M", false), p.named("Nd", false), p.named("Pc", false))
}

// wordLatin is what Oniguruma's \w holds besides when it stands outside a class: superscripts and fractions.
var wordLatin = ucd.Ranges{{Lo: 0xB2, Hi: 0xB3}, {Lo: 0xB9, Hi: 0xB9}, {Lo: 0xBC, Hi: 0xBE}}
