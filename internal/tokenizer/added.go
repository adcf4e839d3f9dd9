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

// Added is an added token as tokenizer_config.json may bring it beside those of tokenizer.json.
type Added struct {
	Content    string `json:"content"`
	Single     bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// More is what stands beside a tokenizer.json. Transformers (5.24) adds it so.
type More struct {
	Listed  []Added  // each goes over one of the same content that the file has
	Named   []string // special, new or not
	Further []string // special where they are new
}

// readAdded reads the added tokens, and then takes more. Their ids follow from the vocabulary, as in the library:
// the id in the file must be that one.
func (t *Tokenizer) readAdded(p part, more More) error {
	r := addedReader{t: t, next: len(t.ids), special: map[string]bool{}, at: map[string]int{}}
	if !p.null() {
		if err := p.few(maxAdded, "added tokens"); err != nil {
			return err
		}
		list, err := p.list()
		if err != nil {
			return err
		}
		for _, p := range list {
			if err := r.read(p); err != nil {
				return err
			}
		}
	}
	if err := r.more(part{path: "tokenizer_config.json"}, more); err != nil {
		return err
	}
	return r.finish(p)
}

func (r *addedReader) more(p part, more More) error {
	for _, a := range more.Listed {
		if err := r.take(p, a); err != nil {
			return err
		}
	}
	for _, text := range more.Named {
		r.special[text] = true
	}
	for _, text := range slices.Concat(more.Named, more.Further) {
		if _, known := r.at[text]; known {
			continue
		}
		if err := r.take(p, Added{Content: text, Special: true}); err != nil {
			return err
		}
	}
	return nil
}

type addedReader struct {
	t       *Tokenizer
	next    int // id of the next token that the vocabulary does not have
	list    []Added
	at      map[string]int // in list, by content
	special map[string]bool
}

// read reads one of the file, which has every key and no content twice.
func (r *addedReader) read(p part) error {
	o, err := p.object("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
	if err != nil {
		return err
	}
	var a Added
	var id int64
	for _, f := range []struct {
		key string
		to  any
	}{{"id", &id}, {"content", &a.Content}, {"single_word", &a.Single}, {"lstrip", &a.LStrip}, {"rstrip", &a.RStrip}, {"normalized", &a.Normalized}, {"special", &a.Special}} {
		if err := o.get(f.key).into(f.to); err != nil {
			return err
		}
	}
	if _, twice := r.at[a.Content]; twice {
		return p.errorf("%.40q is there twice", a.Content)
	}
	if err := r.take(p, a); err != nil {
		return err
	}
	if want := r.t.ids[a.Content]; int64(want) != id {
		return p.errorf("%q has id %d, by the vocabulary it would be %d", a.Content, id, want)
	}
	return nil
}

// take gives a token its id: that of the vocabulary, or the next one.
func (r *addedReader) take(p part, a Added) error {
	if a.Content == "" || len(a.Content) > maxMark {
		return p.errorf("%.40q is empty or longer than %d bytes", a.Content, maxMark)
	}
	if _, known := r.t.ids[a.Content]; !known {
		if err := r.t.name(p, a.Content, int64(r.next)); err != nil {
			return err
		}
		r.next++
	}
	if a.Special {
		r.special[a.Content] = true // and stays so, as in the library
	}
	if i, known := r.at[a.Content]; known {
		r.list[i] = a
		return nil
	}
	if len(r.list) == maxAdded {
		return p.errorf("more than %d added tokens", maxAdded)
	}
	r.at[a.Content] = len(r.list)
	r.list = append(r.list, a)
	return nil
}

func (r *addedReader) finish(p part) error {
	t := r.t
	for _, a := range r.list {
		if err := r.keep(p, a); err != nil {
			return err
		}
	}
	for i := range t.tokens { // by what the decoder gets, as in the library
		t.tokens[i].special = r.special[t.tokens[i].text] && t.tokens[i].known
	}
	if err := t.literal.build(p); err != nil {
		return err
	}
	return t.normalized.build(p)
}

// keep puts a into the matcher it belongs to.
func (r *addedReader) keep(p part, a Added) error {
	m := mark{text: a.Content, id: r.t.ids[a.Content], lstrip: a.LStrip, rstrip: a.RStrip, single: a.Single}
	if !a.Normalized {
		r.t.literal.marks = append(r.t.literal.marks, m)
		return nil
	}
	for _, rewrite := range r.t.normalizer {
		m.text = rewrite.do(m.text)
	}
	if m.text == "" {
		return p.errorf("%.40q is empty after normalization", a.Content)
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
