package tokenizer

import (
	"iter"
	"strings"

	"tfbatch/internal/tokenizer/pattern"
	"tfbatch/internal/tokenizer/ucd"
)

// rewrite is one normalizer. A text of n bytes becomes one of n times growth at most, but for what is put
// before it once.
type rewrite struct {
	do     func(string) string
	growth int
}

// maxGrowth bounds how much longer all steps together may make a text. NFKC makes 33 bytes of 3 at worst; known
// files make a text three times as long, and 64 steps could make it 2^64 times as long.
const maxGrowth = 256

// grown multiplies the growth of steps, up to what is refused.
func grown(growth int, p part, by int) (int, error) {
	if by = max(by, 1); growth > maxGrowth/by {
		return 0, p.errorf("the steps make a text over %d times as long", maxGrowth)
	}
	return growth * by, nil
}

const normalizers = "Sequence, NFC, NFD, NFKC, NFKD, Replace, Prepend"

// readNormalizer appends the normalizers of p to list.
func readNormalizer(p part, list []rewrite, depth int) ([]rewrite, error) {
	if p.null() {
		return list, nil
	}
	kind, err := p.kind()
	if err != nil {
		return nil, err
	}
	var r rewrite
	switch kind {
	case "Sequence":
		return readSequence(p, "normalizers", list, depth, readNormalizer)
	case "NFC", "NFD", "NFKC", "NFKD":
		r, err = readForm(p, kind)
	case "Replace":
		r, err = readReplace(p)
	case "Prepend":
		r, err = readPrepend(p)
	default:
		return nil, p.unsupported(kind, normalizers)
	}
	return append(list, r), err
}

// readSequence reads a Sequence of whatever read reads.
func readSequence[T any](p part, key string, list []T, depth int, read func(part, []T, int) ([]T, error)) ([]T, error) {
	o, err := p.object("type", key)
	if err != nil {
		return nil, err
	}
	parts, err := o.get(key).list()
	if err != nil {
		return nil, err
	}
	if depth == maxNested || len(list)+len(parts) > maxSteps {
		return nil, p.errorf("more than %d steps, or nested deeper than %d", maxSteps, maxNested)
	}
	for _, p := range parts {
		if p.null() {
			return nil, p.errorf("missing")
		}
		if list, err = read(p, list, depth+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func readForm(p part, form string) (r rewrite, err error) {
	if _, err := p.object("type"); err != nil {
		return r, err
	}
	n, err := ucd.NewNormalizer(form)
	if err != nil {
		return r, p.errorf("%w", err)
	}
	return rewrite{n.String, formGrowth}, nil
}

// formGrowth is the most that a normal form makes of a code point: 33 bytes of 3 in NFKC.
const formGrowth = 11

func readPrepend(p part) (r rewrite, err error) {
	o, err := p.object("type", "prepend")
	if err != nil {
		return r, err
	}
	prefix, err := o.text("prepend")
	if len(prefix) > maxToken {
		return r, o.get("prepend").errorf("%d bytes, limit is %d", len(prefix), maxToken)
	}
	r.do = func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	}
	return r, err
}

// readReplace reads a Replace, which is a normalizer and a decoder.
func readReplace(p part) (r rewrite, err error) {
	o, err := p.object("type", "pattern", "content")
	if err != nil {
		return r, err
	}
	content, err := o.text("content")
	if err != nil {
		return r, err
	}
	if len(content) > maxToken {
		return r, o.get("content").errorf("%d bytes, limit is %d", len(content), maxToken)
	}
	find, least, err := readFinder(o.get("pattern"))
	r.growth = (len(content) + least - 1) / least
	r.do = func(s string) string {
		var out strings.Builder
		done := 0
		for start, end := range find(s) {
			out.WriteString(s[done:start])
			out.WriteString(content)
			done = end
		}
		if done == 0 && out.Len() == 0 {
			return s
		}
		out.WriteString(s[done:])
		return out.String()
	}
	return r, err
}

// finder yields the spans of a pattern in a text, in order.
type finder func(text string) iter.Seq2[int, int]

// readFinder reads {"String": ...} or {"Regex": ...}. A match has least bytes or more; those of an expression
// count as one, and may be empty.
func readFinder(p part) (find finder, least int, err error) {
	o, err := p.object("String", "Regex")
	if err != nil {
		return nil, 1, err
	}
	if len(o.fields) != 1 {
		return nil, 1, p.errorf("needs either String or Regex")
	}
	if o.get("Regex").null() {
		s, err := o.text("String")
		if err == nil && s == "" {
			err = p.errorf("an empty string is not supported")
		}
		return literal(s), max(len(s), 1), err
	}
	expr, err := o.text("Regex")
	if err != nil {
		return nil, 1, err
	}
	compiled, err := pattern.Compile(expr)
	if err != nil {
		return nil, 1, o.get("Regex").errorf("%w", err)
	}
	return compiled.All, 1, nil
}

// literal finds s itself.
func literal(s string) finder {
	return func(text string) iter.Seq2[int, int] {
		return func(yield func(int, int) bool) {
			for at := 0; ; {
				i := strings.Index(text[at:], s)
				if i < 0 || !yield(at+i, at+i+len(s)) {
					return
				}
				at += i + len(s)
			}
		}
	}
}
