package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const none = -1 // no id

// model is byte-pair encoding: a word becomes symbols, one per character, and neighbours
// are merged by rank until no pair has one.
type model struct {
	bytes        bool             // words are raw bytes and each byte is a character
	words        map[string]int32 // whole words, when ignoreMerges
	byteIDs      [256]int32       // by byte, when bytes
	runes        map[rune]int32   // by character, when not
	merges       map[pair]merge
	ignoreMerges bool // a word that is in the vocabulary is one token

	// For characters that are not in the vocabulary, in this order:
	fallback []int32 // ids of <0x00> to <0xFF>, none where missing; nil without byte_fallback
	unk      int32   // none: the character is dropped
	fuseUnk  bool    // neighbours become one unk
}

type pair struct{ left, right int32 }

type merge struct{ rank, id int32 }

// readModel reads the model and names its tokens.
func (t *Tokenizer) readModel(p part, bytes bool) (*model, error) {
	o, err := p.object("type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges")
	if kind, kindErr := p.kind(); kindErr == nil && kind != "BPE" {
		return nil, p.unsupported(kind, "BPE")
	}
	if err != nil {
		return nil, err
	}
	for key, nothing := range map[string]string{"dropout": "0.0", "continuing_subword_prefix": `""`, "end_of_word_suffix": `""`} {
		if err := o.only(key, nothing); err != nil {
			return nil, err
		}
	}
	if err := t.readVocab(o.get("vocab")); err != nil {
		return nil, err
	}
	m := &model{bytes: bytes}
	if err := m.readFlags(o, t.ids); err != nil {
		return nil, err
	}
	m.index(t.ids)
	return m, m.readMerges(o.get("merges"), t.ids)
}

func (t *Tokenizer) readVocab(p part) error {
	if err := p.few(maxTokens, "tokens"); err != nil {
		return err
	}
	var vocab map[string]int64
	if err := p.into(&vocab); err != nil {
		return err
	}
	for text, id := range vocab {
		if err := t.name(p, text, id); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) readFlags(o object, ids map[string]int32) (err error) {
	if m.ignoreMerges, err = o.flag("ignore_merges", false); err != nil {
		return err
	}
	if m.fuseUnk, err = o.flag("fuse_unk", false); err != nil {
		return err
	}
	fallback, err := o.flag("byte_fallback", false)
	if err != nil {
		return err
	}
	if fallback {
		m.fallback = make([]int32, 256)
		for b := range m.fallback {
			m.fallback[b] = lookup(ids, fmt.Sprintf("<0x%02X>", b))
		}
	}
	m.unk = none
	if o.get("unk_token").null() {
		return nil
	}
	unk, err := o.text("unk_token")
	if m.unk = lookup(ids, unk); err == nil && m.unk == none {
		return o.get("unk_token").errorf("%q is not in the vocabulary", unk)
	}
	return err
}

func lookup(ids map[string]int32, text string) int32 {
	if id, ok := ids[text]; ok {
		return id
	}
	return none
}

// index builds the lookups of symbols and words.
func (m *model) index(ids map[string]int32) {
	for b := range m.byteIDs {
		m.byteIDs[b] = lookup(ids, string(letter(byte(b))))
	}
	m.runes, m.words = map[rune]int32{}, map[string]int32{}
	for text, id := range ids {
		if c, size := utf8.DecodeRuneInString(text); size == len(text) && size > 0 {
			m.runes[c] = id
		}
		word, spelled := text, true
		if m.bytes {
			word, spelled = unspell(text)
		}
		if m.ignoreMerges && spelled {
			m.words[word] = id
		}
	}
}

// readMerges reads pairs, or strings of two tokens with a space between; the first has rank 0.
func (m *model) readMerges(p part, ids map[string]int32) error {
	if err := p.few(maxMerges, "merges"); err != nil {
		return err
	}
	pairs, err := mergePairs(p)
	if err != nil {
		return err
	}
	m.merges = make(map[pair]merge, len(pairs))
	for rank, k := range pairs {
		left, right, whole := lookup(ids, k[0]), lookup(ids, k[1]), lookup(ids, k[0]+k[1])
		if left == none || right == none || whole == none {
			return p.errorf("merge %d joins %.40q and %.40q: one of them or the result is not in the vocabulary", rank, k[0], k[1])
		}
		m.merges[pair{left, right}] = merge{int32(rank), whole}
	}
	return nil
}

func mergePairs(p part) ([][2]string, error) {
	var pairs [][]string
	if json.Unmarshal(p.raw, &pairs) == nil && pairs != nil {
		out := make([][2]string, len(pairs))
		for i, k := range pairs {
			if len(k) != 2 {
				return nil, p.errorf("merge %d has %d parts, not 2", i, len(k))
			}
			out[i] = [2]string(k)
		}
		return out, nil
	}
	var lines []string
	if err := p.into(&lines); err != nil {
		return nil, err
	}
	var out [][2]string
	for i, line := range lines {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return nil, p.errorf("merge %d is %.40q, not two tokens with a space between", i, line)
		}
		out = append(out, [2]string{left, right})
	}
	return out, nil
}

// encode appends the ids of one word to dst.
func (m *model) encode(dst []int32, word string, g *merger) []int32 {
	if m.ignoreMerges {
		if id, ok := m.words[word]; ok {
			return append(dst, id)
		}
	}
	g.symbols = g.symbols[:0]
	g.unk = false
	if m.bytes {
		for i := range len(word) {
			m.symbol(g, m.byteIDs[word[i]], letter(word[i]))
		}
	} else {
		for _, c := range word {
			m.symbol(g, m.runeID(c), c)
		}
	}
	m.flush(g)
	return g.merge(dst, m.merges)
}

func (m *model) runeID(c rune) int32 {
	if id, ok := m.runes[c]; ok {
		return id
	}
	return none
}

// symbol adds the character c, which is id in the vocabulary or none. An unk waits for what
// comes next, and bytes of a fallback overtake it: so they do in the library.
func (m *model) symbol(g *merger, id int32, c rune) {
	switch {
	case id != none:
		m.flush(g)
		g.push(id)
	case m.fallBack(g, c):
	case m.unk == none:
	default:
		if !m.fuseUnk {
			m.flush(g)
		}
		g.unk = true
	}
}

// flush adds the unk that waits.
func (m *model) flush(g *merger) {
	if g.unk {
		g.push(m.unk)
		g.unk = false
	}
}

// fallBack adds the bytes of c if the vocabulary has all of them.
func (m *model) fallBack(g *merger, c rune) bool {
	if m.fallback == nil {
		return false
	}
	text := string(c)
	for i := range len(text) {
		if m.fallback[text[i]] == none {
			return false
		}
	}
	for i := range len(text) {
		g.push(m.fallback[text[i]])
	}
	return true
}
