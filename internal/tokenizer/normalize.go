package tokenizer

import (
	"iter"
	"strings"

	"tfbatch/internal/tokenizer/pattern"
	"tfbatch/internal/tokenizer/ucd"
)

// rewrite is one normalizer.
type rewrite func(string) string

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

func readForm(p part, form string) (rewrite, error) {
	if _, err := p.object("type"); err != nil {
		return nil, err
	}
	n, err := ucd.NewNormalizer(form)
	if err != nil {
		return nil, p.errorf("%w", err)
	}
	return n.String, nil
}

func readPrepend(p part) (rewrite, error) {
	o, err := p.object("type", "prepend")
	if err != nil {
		return nil, err
	}
	prefix, err := o.text("prepend")
	if len(prefix) > maxToken {
		return nil, o.get("prepend").errorf("%d bytes, limit is %d", len(prefix), maxToken)
	}
	return func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	}, err
}

// readReplace reads a Replace, which is a normalizer and a decoder.
func readReplace(p part) (rewrite, error) {
	o, err := p.object("type", "pattern", "content")
	if err != nil {
		return nil, err
	}
	content, err := o.text("content")
	if err != nil {
		return nil, err
	}
	if len(content) > maxToken {
		return nil, o.get("content").errorf("%d bytes, limit is %d", len(content), maxToken)
	}
	find, err := readFinder(o.get("pattern"))
	return func(s string) string {
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
	}, err
}

// finder yields the spans of a pattern in a text, in order.
type finder func(text string) iter.Seq2[int, int]

// readFinder reads {"String": ...} or {"Regex": ...}.
func readFinder(p part) (finder, error) {
	o, err := p.object("String", "Regex")
	if err != nil {
		return nil, err
	}
	if len(o.fields) != 1 {
		return nil, p.errorf("needs either String or Regex")
	}
	if o.get("Regex").null() {
		s, err := o.text("String")
		if err == nil && s == "" {
			return nil, p.errorf("an empty string is not supported")
		}
		return literal(s), err
	}
	expr, err := o.text("Regex")
	if err != nil {
		return nil, err
	}
	compiled, err := pattern.Compile(expr)
	if err != nil {
		return nil, o.get("Regex").errorf("%w", err)
	}
	return compiled.All, nil
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
