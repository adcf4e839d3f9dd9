// Package tokenizer turns text into token ids and back, exactly as the Hugging Face
// library (tokenizers 0.23) does with the same tokenizer.json, for byte-level and plain
// BPE models. It is a reader of that file, not a trainer, and keeps no offsets.
//
// Start with [Parse], [Tokenizer.Encode] and [Tokenizer.Decode]; [Stream] decodes token by
// token. The parts of the file are one Go file each, in the order text passes them:
// added.go (added tokens), normalize.go, split.go (pre-tokenizers), model.go and merge.go
// (BPE), template.go (post-processor), decode.go.
//
// What the file asks for and this package does not do exactly (WordPiece, Unigram, dropout,
// ...) is refused by name when the file is read. Its truncation and padding are passed over:
// they are what the last user of the file wanted, and transformers asks each caller anew.
package tokenizer

import (
	"slices"
	"sync"
)

// Tokenizer is one tokenizer.json. Any number of goroutines may use it at once.
type Tokenizer struct {
	tokens     []token
	ids        map[string]int32
	literal    matcher // added tokens looked for in the text as it came
	normalized matcher // and those looked for after normalization
	normalizer []rewrite
	steps      []step
	model      *model
	frame      frame
	decoders   []func() decoder
	scratch    sync.Pool // of *scratch
}

// token is what an id stands for.
type token struct {
	text    string // what the decoder gets; empty and not known for an id that is not used
	known   bool
	special bool // left out by DecodeVisible
}

// Size is one more than the highest id. Ids below it may be unused.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// ID finds the token that is written so in the file: "Ġthe", "<|im_end|>".
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.ids[token]
	return id, ok
}

// Token is the inverse of ID.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if !t.known(id) {
		return "", false
	}
	return t.tokens[id].text, true
}

// Special reports whether the file marks id as special: control, not text.
func (t *Tokenizer) Special(id int32) bool { return t.known(id) && t.tokens[id].special }

func (t *Tokenizer) known(id int32) bool {
	return id >= 0 && int(id) < len(t.tokens) && t.tokens[id].known
}

// Encode gives the ids of text alone. Added tokens written in the text, special ones too,
// become their ids. Bytes that are not UTF-8 count as U+FFFD, as Decode would show them.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.encode(nil, text)
}

// EncodeFramed is Encode with what the file's post-processor puts around a text, such as
// the token that begins a sequence.
func (t *Tokenizer) EncodeFramed(text string) []int32 {
	ids := t.encode(append([]int32(nil), t.frame.before...), text)
	return append(ids, t.frame.after...)
}

func (t *Tokenizer) encode(ids []int32, text string) []int32 {
	s := t.scratch.Get().(*scratch)
	s.ids = ids
	t.literal.cut(piece{validText(text), true}, s.add, func(p piece) {
		for _, rewrite := range t.normalizer {
			p.text = rewrite.do(p.text)
		}
		t.normalized.cut(p, s.add, s.words)
	})
	ids, s.ids = s.ids, nil
	if cap(s.symbols) <= keepSymbols {
		t.scratch.Put(s)
	}
	return ids
}

// keepSymbols is the longest word whose working memory, 28 bytes a symbol, is kept for the next.
const keepSymbols = 1 << 16

// scratch is what one Encode at a time works with.
type scratch struct {
	ids   []int32
	words func(piece) // pre-tokenizes it and appends the ids of its words
	merger
}

func (s *scratch) add(id int32) { s.ids = append(s.ids, id) }

// newScratch chains the steps: each hands its pieces to the next, the last to the model.
func (t *Tokenizer) newScratch() *scratch {
	s := &scratch{}
	s.words = func(word piece) { s.ids = t.model.encode(s.ids, word.text, &s.merger) }
	s.chain(t.steps)
	return s
}

// chain puts steps before what takes words.
func (s *scratch) chain(steps []step) {
	for _, step := range slices.Backward(steps) {
		next := s.words
		s.words = func(p piece) { step.split(p, next) }
	}
}
