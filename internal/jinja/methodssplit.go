package jinja

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// splitMethods cut strings up.
func splitMethods() []*function {
	split, sep := []param{opt("sep", none{}), opt("maxsplit", integer(-1))}, []param{need("sep")}
	return []*function{
		textMethod("split", 1, split, splitMethod(false)),
		textMethod("rsplit", 1, split, splitMethod(true)),
		textMethod("splitlines", 1, []param{opt("keepends", boolean(false))}, splitLinesMethod),
		textMethod("partition", 2, sep, partition(false)),
		textMethod("rpartition", 2, sep, partition(true)),
	}
}

func splitMethod(fromRight bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		n, err := wantInt(a[2])
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n = len(s) + 1
		}
		var parts []string
		if !given(a[1]) {
			parts = splitSpace(s, n, fromRight)
		} else {
			sep, err := wantText(a[1])
			if err != nil {
				return nil, err
			}
			if sep == "" {
				return nil, errors.New("empty separator")
			}
			parts = splitText(s, sep, n, fromRight)
		}
		return textList(r, a[0], parts, len(s))
	}
}

// textList makes strings like v; looking through n bytes gave them.
func textList(r *run, v Value, parts []string, n int) (Value, error) {
	l := &list{make([]Value, len(parts))}
	for i, part := range parts {
		l.items[i] = like(v, part)
	}
	if err := r.items(len(parts)); err != nil {
		return nil, err
	}
	return l, r.scan(n)
}

// splitText splits at sep, at most n times.
func splitText(s, sep string, n int, fromRight bool) []string {
	if !fromRight {
		return strings.SplitN(s, sep, n+1)
	}
	var parts []string
	for ; n > 0; n-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	return turned(append(parts, s))
}

func turned(parts []string) []string {
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

// splitSpace splits at runs of white space, at most n times; there are no empty parts.
func splitSpace(s string, n int, fromRight bool) []string {
	if fromRight {
		return splitSpaceRight(s, n)
	}
	var parts []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; n-- {
		i := strings.IndexFunc(s, isSpace)
		if n == 0 || i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	return parts
}

func splitSpaceRight(s string, n int) []string {
	var parts []string
	for s = strings.TrimRightFunc(s, isSpace); s != ""; n-- {
		i := strings.LastIndexFunc(s, isSpace)
		if n == 0 || i < 0 {
			parts = append(parts, s)
			break
		}
		_, width := utf8.DecodeRuneInString(s[i:])
		parts = append(parts, s[i+width:])
		s = strings.TrimRightFunc(s[:i], isSpace)
	}
	return turned(parts)
}

func splitLinesMethod(r *run, a []Value) (Value, error) {
	s, _ := text(a[0])
	return textList(r, a[0], splitLines(s, truth(a[1])), len(s))
}

// splitLines splits where Python's str.splitlines does.
func splitLines(s string, keepEnds bool) []string {
	var lines []string
	for s != "" {
		end := strings.IndexFunc(s, isLineBreak)
		if end < 0 {
			return append(lines, s)
		}
		_, width := utf8.DecodeRuneInString(s[end:])
		next := end + width
		if strings.HasPrefix(s[end:], "\r\n") {
			next++
		}
		if keepEnds {
			end = next
		}
		lines = append(lines, s[:end])
		s = s[next:]
	}
	return lines
}

func isLineBreak(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

func partition(last bool) body {
	return func(r *run, a []Value) (Value, error) {
		s, _ := text(a[0])
		sep, err := wantText(a[1])
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, errors.New("empty separator")
		}
		before, after, found := strings.Cut(s, sep)
		if i := strings.LastIndex(s, sep); last && found {
			before, after = s[:i], s[i+len(sep):]
		}
		if !found {
			sep = ""
		}
		if !found && last {
			before, after = after, before
		}
		return newTuple(like(a[0], before), like(a[0], sep), like(a[0], after)), r.scan(len(s))
	}
}
