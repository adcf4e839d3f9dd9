package tokenizer

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

// mark is one added token as it is looked for in text.
type mark struct {
	text           string
	id             int32
	lstrip, rstrip bool // takes the white space beside it too
	single         bool // only where no word character is beside it
}

// matcher cuts text at added tokens: the leftmost, and of those the longest.
type matcher struct {
	marks       []mark // by text
	first       [256]bool
	word, space *ucd.Set // nil when no mark needs them
}

// readAdded reads the added tokens. Their ids follow from the vocabulary, as in the
// library: the id in the file must be that one.
func (t *Tokenizer) readAdded(p part) error {
	if p.null() {
		return nil
	}
	if err := p.few(maxAdded, "added tokens"); err != nil {
		return err
	}
	list, err := p.list()
	if err != nil {
		return err
	}
	r := addedReader{t: t, next: len(t.ids), special: map[string]bool{}, seen: map[string]bool{}}
	for _, p := range list {
		if err := r.read(p); err != nil {
			return err
		}
	}
	for i := range t.tokens {
		t.tokens[i].special = r.special[t.tokens[i].text] && t.tokens[i].known
	}
	if err := t.literal.build(p); err != nil {
		return err
	}
	return t.normalized.build(p)
}

type addedReader struct {
	t       *Tokenizer
	next    int // id of the next token that the vocabulary does not have
	special map[string]bool
	seen    map[string]bool
}

func (r *addedReader) read(p part) error {
	o, err := p.object("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
	if err != nil {
		return err
	}
	var m mark
	var id int64
	var special, normalized bool
	for _, f := range []struct {
		key string
		to  any
	}{{"id", &id}, {"content", &m.text}, {"single_word", &m.single}, {"lstrip", &m.lstrip}, {"rstrip", &m.rstrip}, {"normalized", &normalized}, {"special", &special}} {
		if err := o.get(f.key).into(f.to); err != nil {
			return err
		}
	}
	if m.text == "" || len(m.text) > maxMark || r.seen[m.text] {
		return p.errorf("%.40q is empty, longer than %d bytes or there twice", m.text, maxMark)
	}
	r.seen[m.text] = true
	if m.id, err = r.assign(p, m.text, id); err != nil {
		return err
	}
	if special {
		r.special[m.text] = true
	}
	return r.keep(p, m, normalized)
}

// assign gives text the id that the library gives it.
func (r *addedReader) assign(p part, text string, id int64) (int32, error) {
	want, known := r.t.ids[text]
	if !known {
		want = int32(r.next)
		r.next++
	}
	if int64(want) != id {
		return 0, p.errorf("%q has id %d, by the vocabulary it would be %d", text, id, want)
	}
	if known {
		return want, nil
	}
	return want, r.t.name(p, text, id)
}

// keep puts m into the matcher it belongs to.
func (r *addedReader) keep(p part, m mark, normalized bool) error {
	if !normalized {
		r.t.literal.marks = append(r.t.literal.marks, m)
		return nil
	}
	for _, rewrite := range r.t.normalizer {
		m.text = rewrite.do(m.text)
	}
	if m.text == "" {
		return p.errorf("is empty after normalization")
	}
	r.t.tokens[m.id].text = m.text // what the decoder gets
	r.t.normalized.marks = append(r.t.normalized.marks, m)
	return nil
}

// build makes the matcher ready; p is for its error.
func (m *matcher) build(p part) error {
	slices.SortFunc(m.marks, func(a, b mark) int { return cmp.Compare(a.text, b.text) })
	for i, k := range m.marks {
		if i > 0 && m.marks[i-1].text == k.text {
			return p.errorf("ids %d and %d are both %q after normalization", m.marks[i-1].id, k.id, k.text)
		}
		m.first[k.text[0]] = true
		if m.space == nil && (k.lstrip || k.rstrip) {
			m.space = ucd.NewSet(class("White_Space"))
		}
		if m.word == nil && k.single {
			m.word = ucd.NewSet(ucd.Union(class("Alphabetic"), class("M"), class("Nd"), class("Pc"), ucd.Ranges{{Lo: 0x200C, Hi: 0x200D}}))
		}
	}
	return nil
}

// class is a class that package ucd is known to have.
func class(name string) ucd.Ranges {
	r, err := ucd.Class(name)
	if err != nil {
		panic("tokenizer: " + err.Error())
	}
	return r
}

// cut hands the added tokens in p to add and what is between them to text, in order.
func (m *matcher) cut(p piece, add func(id int32), text func(piece)) {
	s, done := p.text, 0
	if len(m.marks) == 0 {
		if s != "" {
			text(p)
		}
		return
	}
	for at := 0; at < len(s); {
		if !m.first[s[at]] {
			at++
			continue
		}
		k := m.longest(s[at:])
		if k == nil {
			at++
			continue
		}
		start, end := at, at+len(k.text)
		at = end
		if k.single && (m.wordBefore(s[:start]) || m.wordAfter(s[end:])) {
			continue
		}
		if k.lstrip {
			start = m.trimmed(s[:start]) // may be below done: the match before took that space
		}
		if k.rstrip {
			end += m.spaces(s[end:])
		}
		if done < start {
			text(piece{s[done:start], p.first && done == 0})
		}
		add(k.id)
		// A mark that starts with white space may lie in what rstrip took, and done then
		// goes back: so does the library.
		done = end
	}
	if done < len(s) {
		text(piece{s[done:], p.first && done == 0})
	}
}

// longest finds the longest mark that s starts with, by narrowing the sorted marks down.
func (m *matcher) longest(s string) *mark {
	var best *mark
	lo, hi := 0, len(m.marks)
	for i := 0; i < len(s) && lo < hi; i++ {
		b := s[i]
		lo += sort.Search(hi-lo, func(k int) bool { return m.marks[lo+k].text[i] >= b })
		hi = lo + sort.Search(hi-lo, func(k int) bool { return m.marks[lo+k].text[i] > b })
		if lo < hi && len(m.marks[lo].text) == i+1 {
			best = &m.marks[lo]
			lo++
		}
	}
	return best
}

func (m *matcher) wordBefore(s string) bool {
	c, size := utf8.DecodeLastRuneInString(s)
	return size > 0 && m.word.Has(c)
}

func (m *matcher) wordAfter(s string) bool {
	c, size := utf8.DecodeRuneInString(s)
	return size > 0 && m.word.Has(c)
}

// trimmed is the length of s without the white space at its end.
func (m *matcher) trimmed(s string) int { return len(strings.TrimRightFunc(s, m.space.Has)) }

// spaces is the length of the white space at the start of s.
func (m *matcher) spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, m.space.Has)) }
