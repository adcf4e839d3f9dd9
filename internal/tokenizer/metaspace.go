package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// metaspace is how newer files write SentencePiece's spaces, as a pre-tokenizer: a space becomes a mark, one
// mark goes before the text, and words may be cut before each. (Older files do it with the normalizers
// Prepend and Replace.) The same object is a decoder.
type metaspace struct {
	mark   string // ▁ in every known file
	scheme scheme
	cut    bool // into words; otherwise merges may cross spaces
}

// scheme is which pieces get a mark before them where they have none.
type scheme string

const (
	always scheme = "always" // each: what stands behind an added token too
	first  scheme = "first"  // only the one at the start of the text
	never  scheme = "never"
)

func readMetaspace(p part) (m metaspace, err error) {
	o, err := p.object("type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep")
	if err != nil {
		return m, err
	}
	if m.mark, err = o.text("replacement"); err != nil {
		return m, err
	}
	if utf8.RuneCountInString(m.mark) != 1 {
		return m, o.get("replacement").errorf("%.40q is not one character", m.mark)
	}
	m.scheme = always
	if !o.get("prepend_scheme").null() {
		if err := o.get("prepend_scheme").into(&m.scheme); err != nil {
			return m, err
		}
	}
	switch m.scheme {
	case always, first, never:
	default:
		return m, o.get("prepend_scheme").errorf("%.40q is not known (known are always, first, never)", m.scheme)
	}
	prefix, err := o.flag("add_prefix_space", m.scheme != never)
	if err != nil {
		return m, err
	}
	if !prefix && m.scheme != never { // the library refuses that too
		return m, o.get("add_prefix_space").errorf("false does not go with prepend_scheme %s", m.scheme)
	}
	m.cut, err = o.flag("split", true)
	return m, err
}

func (m metaspace) split(p piece, emit func(piece)) {
	p.text = strings.ReplaceAll(p.text, " ", m.mark)
	if (m.scheme == always || m.scheme == first && p.first) && !strings.HasPrefix(p.text, m.mark) {
		p.text = m.mark + p.text
	}
	if !m.cut {
		emit(p)
		return
	}
	split{find: literal(m.mark), behavior: withNext}.split(p, emit)
}

// unmarked is the decoder: a mark is a space, and none in the first token.
type unmarked struct {
	metaspace
	later bool // the first token was there
}

func (u *unmarked) push(token string, emit func(string)) {
	space := " "
	if !u.later && u.scheme != never {
		space = ""
	}
	u.later = true
	emit(strings.ReplaceAll(token, u.mark, space))
}

func (u *unmarked) flush(func(string)) {}
