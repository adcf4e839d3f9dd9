package jinja

import "strings"

// token is a piece of a template. In data and strings the text is already what it stands for.
type token struct {
	kind tokenKind
	text string
	line int
}

type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokBlockBegin
	tokBlockEnd
	tokVarBegin
	tokVarEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp // text is the operator
)

// describe is the token as error messages have it.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data / text"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokVarBegin:
		return "begin of print statement"
	case tokVarEnd:
		return "end of print statement"
	case tokString:
		return "string"
	}
	return t.text
}

// lexer cuts a template into tokens. It follows jinja2's regular expressions step by step; the
// names of theirs are in the comments.
type lexer struct {
	src    string
	pos    int
	line   int // of pos
	lineAt int // the position that line was counted up to
	tokens []token
	open   []byte // brackets still open in the current tag, as what closes them
}

// lex tokenizes a template with trim_blocks and lstrip_blocks on and keep_trailing_newline off.
func lex(source string) ([]token, error) {
	source = normalizeNewlines(source)
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "", l.pos)
	return l.tokens, nil
}

func normalizeNewlines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (l *lexer) emit(kind tokenKind, text string, at int) {
	l.tokens = append(l.tokens, token{kind, text, l.lineOf(at)})
}

// lineOf counts the line of a position; positions are asked for in rising order.
func (l *lexer) lineOf(at int) int {
	if at > l.lineAt {
		l.line += strings.Count(l.src[l.lineAt:at], "\n")
		l.lineAt = at
	}
	return l.line
}

// root reads data up to the next tag, then the tag.
func (l *lexer) root() error {
	start := l.pos
	tag := nextTag(l.src, start)
	if tag < 0 {
		l.emit(tokData, l.src[start:], start)
		l.pos = len(l.src)
		return nil
	}
	l.pos = tag + 2
	sign := l.sign()
	l.data(start, tag, sign, l.src[tag+1] == '{')
	switch l.src[tag+1] {
	case '#':
		return l.comment(tag)
	case '{':
		l.emit(tokVarBegin, "", tag)
		return l.expression(tag, tokVarEnd)
	}
	if end, ok := l.rawTag(); ok {
		l.pos = end
		return l.raw(tag)
	}
	l.emit(tokBlockBegin, "", tag)
	return l.expression(tag, tokBlockEnd)
}

func nextTag(src string, from int) int {
	for {
		i := strings.IndexByte(src[from:], '{')
		if i < 0 || from+i+1 >= len(src) {
			return -1
		}
		from += i
		if c := src[from+1]; c == '{' || c == '%' || c == '#' {
			return from
		}
		from++
	}
}

// sign reads the + or - behind the opening of a tag.
func (l *lexer) sign() byte {
	if l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
		l.pos++
		return l.src[l.pos-1]
	}
	return 0
}

// data emits the text before a tag, stripped as its sign and lstrip_blocks ask (OptionalLStrip).
func (l *lexer) data(start, tag int, sign byte, variable bool) {
	text := l.src[start:tag]
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && !variable:
		text = l.lstrip(text, start)
	}
	if text != "" {
		l.emit(tokData, text, start)
	}
}

// lstrip drops the white space between the start of a line and the tag that follows.
func (l *lexer) lstrip(text string, start int) string {
	lineStart := strings.LastIndexByte(text, '\n') + 1
	if lineStart == 0 && start > 0 && l.src[start-1] != '\n' {
		return text
	}
	if strings.TrimLeftFunc(text[lineStart:], isSpace) == "" {
		return text[:lineStart]
	}
	return text
}

// comment skips to its end (TOKEN_COMMENT_BEGIN).
func (l *lexer) comment(tag int) error {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 && l.pos < len(l.src) {
		return failAt(l.lineOf(tag), "missing end of comment tag")
	}
	if i < 0 {
		return nil // jinja2 does not miss the end of a comment that has nothing in it
	}
	var sign byte
	if i > 0 {
		sign = l.src[l.pos+i-1]
	}
	l.pos += i + 2
	l.afterTag(sign)
	return nil
}

// afterTag skips what the end of a comment or block takes with it: all white space behind a
// minus, nothing behind a plus, else one newline (trim_blocks).
func (l *lexer) afterTag(sign byte) {
	switch sign {
	case '-':
		l.pos = l.skipSpace(l.pos)
	case '+':
	default:
		if l.pos < len(l.src) && l.src[l.pos] == '\n' {
			l.pos++
		}
	}
}

func (l *lexer) skipSpace(at int) int {
	return len(l.src) - len(strings.TrimLeftFunc(l.src[at:], isSpace))
}

// rawTag reports whether the block tag at pos is a raw tag, and where it ends (raw_begin).
func (l *lexer) rawTag() (end int, ok bool) {
	at, ok := l.word(l.pos, "raw")
	if !ok {
		return 0, false
	}
	if strings.HasPrefix(l.src[at:], "-%}") {
		return l.skipSpace(at + 3), true
	}
	return at + 2, strings.HasPrefix(l.src[at:], "%}")
}

// word skips white space, w and white space.
func (l *lexer) word(at int, w string) (end int, ok bool) {
	at = l.skipSpace(at)
	if !strings.HasPrefix(l.src[at:], w) {
		return 0, false
	}
	return l.skipSpace(at + len(w)), true
}

// raw emits the text up to endraw as data (TOKEN_RAW_BEGIN).
func (l *lexer) raw(tag int) error {
	start := l.pos
	for at := start; ; at += 2 {
		i := strings.Index(l.src[at:], "{%")
		if i < 0 && start == len(l.src) {
			return nil // as with comments
		}
		if i < 0 {
			return failAt(l.lineOf(tag), "missing end of raw directive")
		}
		at += i
		l.pos = at + 2
		sign := l.sign()
		end, ok := l.word(l.pos, "endraw")
		if !ok {
			continue
		}
		var endSign byte
		if end < len(l.src) && (l.src[end] == '-' || l.src[end] == '+') {
			endSign = l.src[end]
			end++
		}
		if !strings.HasPrefix(l.src[end:], "%}") {
			continue
		}
		l.data(start, at, sign, false)
		l.pos = end + 2
		l.afterTag(endSign)
		return nil
	}
}

// isSpace is Python's str.isspace for one code point, and \s of its regular expressions.
func isSpace(c rune) bool {
	switch {
	case c >= '\t' && c <= '\r', c >= 0x1c && c <= ' ', c == 0x85, c == 0xa0, c == 0x1680,
		c >= 0x2000 && c <= 0x200a, c == 0x2028, c == 0x2029, c == 0x202f, c == 0x205f, c == 0x3000:
		return true
	}
	return false
}
