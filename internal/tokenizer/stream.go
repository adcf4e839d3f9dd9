package tokenizer

import "strings"

// Decode gives the text of ids, with special tokens as they are written. Ids that stand for
// nothing are left out. Bytes that are not UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string { return decodeAll(t.Stream(), ids) }

// DecodeVisible is Decode without special tokens: what a reader should see.
func (t *Tokenizer) DecodeVisible(ids []int32) string { return decodeAll(t.VisibleStream(), ids) }

func decodeAll(s *Stream, ids []int32) string {
	for _, id := range ids {
		s.push(id)
	}
	s.finish()
	return s.out.String()
}

// Stream decodes token by token. What its calls return, joined, is what decoding all ids at
// once gives. One goroutine uses it.
type Stream struct {
	t       *Tokenizer
	visible bool // leaves special tokens out
	steps   []decoder
	first   func(token string) // hands a token to the first step
	out     strings.Builder
}

// Stream starts the counterpart of Decode.
func (t *Tokenizer) Stream() *Stream { return t.newStream(false) }

// VisibleStream starts the counterpart of DecodeVisible.
func (t *Tokenizer) VisibleStream() *Stream { return t.newStream(true) }

func (t *Tokenizer) newStream(visible bool) *Stream {
	s := &Stream{t: t, visible: visible}
	s.begin()
	return s
}

// begin makes the stream ready for a new text.
func (s *Stream) begin() {
	s.steps = s.steps[:0]
	for _, build := range s.t.decoders {
		s.steps = append(s.steps, build())
	}
	s.first = s.from(0)
}

// from chains the steps from i on: each emits to the next, the last to out.
func (s *Stream) from(i int) func(string) {
	if i == len(s.steps) {
		return func(text string) { s.out.WriteString(text) }
	}
	step, next := s.steps[i], s.from(i+1)
	return func(token string) { step.push(token, next) }
}

// Push takes the next id and returns the text that is certain by now, whole characters
// only. It is often empty: a character may take several tokens.
func (s *Stream) Push(id int32) string {
	s.push(id)
	return s.take()
}

// Flush ends the text and returns the rest of it. The stream is then as new.
func (s *Stream) Flush() string {
	s.finish()
	s.begin()
	return s.take()
}

func (s *Stream) push(id int32) {
	if s.t.known(id) && !(s.visible && s.t.tokens[id].special) {
		s.first(s.t.tokens[id].text)
	}
}

func (s *Stream) finish() {
	for i, step := range s.steps {
		step.flush(s.from(i + 1))
	}
}

func (s *Stream) take() string {
	text := s.out.String()
	s.out.Reset()
	return text
}
