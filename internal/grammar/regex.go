package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode"
)

// maxPattern is the longest regular expression, in bytes.
const maxPattern = 1 << 14

// Regex is the grammar of the texts that match the whole of a regular expression, in Go's syntax: no look-around
// and no back reference. ^ and $ may stand at its ends.
func Regex(pattern string) (*Grammar, error) {
	return compile(func(p *pool) (expr, error) { return p.regex(pattern, p.runes, nothing) })
}

// regex reads a pattern. spell is how the code points from one to another are written, and around what may
// stand before and behind a match that the pattern does not tie to the ends.
func (p *pool) regex(pattern string, spell func(lo, hi rune) expr, around expr) (expr, error) {
	if len(pattern) > maxPattern {
		return 0, fmt.Errorf("pattern has %d bytes, at most %d are read", len(pattern), maxPattern)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	t := translation{pool: p, spell: spell, around: around}
	e, err := t.part(re, true, true)
	if err != nil {
		return 0, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return e, nil
}

// translation makes expressions of a syntax tree.
type translation struct {
	*pool
	spell  func(lo, hi rune) expr
	around expr
}

// part translates re, which begins the pattern if first, and ends it if last.
func (t *translation) part(re *syntax.Regexp, first, last bool) (expr, error) {
	switch re.Op {
	case syntax.OpConcat:
		return t.list(re.Sub, first, last)
	case syntax.OpCapture:
		return t.part(re.Sub[0], first, last)
	case syntax.OpAlternate:
		return t.either(re.Sub, first, last)
	case syntax.OpBeginText, syntax.OpBeginLine:
		if first {
			return t.frame(nothing, false, last), nil
		}
		return 0, errors.New("^ is only supported at the start")
	case syntax.OpEndText, syntax.OpEndLine:
		if last {
			return t.frame(nothing, first, false), nil
		}
		return 0, errors.New("$ is only supported at the end")
	}
	e, err := t.inner(re)
	return t.frame(e, first, last), err
}

func (t *translation) frame(e expr, before, behind bool) expr {
	if before {
		e = t.then(t.around, e)
	}
	if behind {
		e = t.then(e, t.around)
	}
	return e
}

func (t *translation) list(subs []*syntax.Regexp, first, last bool) (expr, error) {
	parts := make([]expr, len(subs))
	for i, sub := range subs {
		var err error
		if parts[i], err = t.part(sub, first && i == 0, last && i == len(subs)-1); err != nil {
			return 0, err
		}
	}
	return t.seq(parts...), nil
}

func (t *translation) either(subs []*syntax.Regexp, first, last bool) (expr, error) {
	parts := make([]expr, len(subs))
	for i, sub := range subs {
		var err error
		if parts[i], err = t.part(sub, first, last); err != nil {
			return 0, err
		}
	}
	return t.alt(parts...), nil
}

// inner translates what has no end of the pattern in it.
func (t *translation) inner(re *syntax.Regexp) (expr, error) {
	switch re.Op {
	case syntax.OpNoMatch:
		return never, nil
	case syntax.OpEmptyMatch:
		return nothing, nil
	case syntax.OpLiteral:
		return t.letters(re), nil
	case syntax.OpCharClass:
		return t.class(re.Rune), nil
	case syntax.OpAnyChar:
		return t.spell(0, unicode.MaxRune), nil
	case syntax.OpAnyCharNotNL:
		return t.class([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}), nil
	case syntax.OpStar:
		return t.times(re, 0, endless)
	case syntax.OpPlus:
		return t.times(re, 1, endless)
	case syntax.OpQuest:
		return t.times(re, 0, 1)
	case syntax.OpRepeat:
		return t.times(re, int32(re.Min), int32(re.Max))
	}
	return 0, fmt.Errorf("%s is not supported", re)
}

func (t *translation) times(re *syntax.Regexp, min, max int32) (expr, error) {
	e, err := t.part(re.Sub[0], false, false)
	return t.repeat(e, min, max), err
}

func (t *translation) letters(re *syntax.Regexp) expr {
	parts := make([]expr, len(re.Rune))
	for i, r := range re.Rune {
		parts[i] = t.spell(r, r)
		if re.Flags&syntax.FoldCase == 0 {
			continue
		}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			parts[i] = t.alt(parts[i], t.spell(f, f))
		}
	}
	return t.seq(parts...)
}

// class is one code point of the pairs lo, hi.
func (t *translation) class(pairs []rune) expr {
	parts := make([]expr, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, t.spell(pairs[i], pairs[i+1]))
	}
	return t.alt(parts...)
}
