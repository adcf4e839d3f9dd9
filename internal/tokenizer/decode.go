package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder is one step from tokens to text. It gets tokens one at a time and hands on what
// is certain; flush comes once, after the last.
type decoder interface {
	push(token string, emit func(string))
	flush(emit func(string))
}

const decoders = "Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace"

// readDecoder reads the decoder as the steps to build for each text.
func readDecoder(p part) ([]func() decoder, error) {
	if p.null() {
		return []func() decoder{func() decoder { return &spaces{} }}, nil
	}
	r := decoderReader{growth: 1}
	return r.read(p, nil, 0)
}

// decoderReader knows whether the tokens have been joined to one by then. The library runs
// each step over the whole list, so a step behind a joining one sees all text at once; of
// those only Strip can work on a stream.
type decoderReader struct {
	joined bool
	growth int // of the steps so far
}

func (r *decoderReader) read(p part, list []func() decoder, depth int) ([]func() decoder, error) {
	kind, err := p.kind()
	if err != nil {
		return nil, err
	}
	if kind == "Sequence" {
		return readSequence(p, "decoders", list, depth, r.read)
	}
	if r.joined && kind != "Strip" && kind != "Fuse" {
		return nil, p.errorf("%s after the tokens were joined is not supported", kind)
	}
	var build func() decoder
	switch kind {
	case "ByteLevel":
		_, err = p.object("type", "add_prefix_space", "trim_offsets", "use_regex")
		build = func() decoder { return &spelled{} }
		r.joined = true
	case "ByteFallback":
		_, err = p.object("type")
		build = func() decoder { return &hexBytes{} }
	case "Fuse":
		_, err = p.object("type")
		r.joined = true
		return list, err
	case "Replace":
		var f rewrite
		if f, err = readReplace(p); err == nil {
			r.growth, err = grown(r.growth, p, f.growth)
		}
		build = func() decoder { return f }
	case "Strip":
		build, err = r.readStrip(p)
	case "Metaspace":
		var m metaspace
		m, err = readMetaspace(p)
		build = func() decoder { return &unmarked{metaspace: m} }
	default:
		return nil, p.unsupported(kind, decoders)
	}
	return append(list, build), err
}

// push and flush make a rewrite a decoder of single tokens.
func (f rewrite) push(token string, emit func(string)) { emit(f.do(token)) }
func (f rewrite) flush(func(string))                   {}

// spaces joins tokens with spaces: what a file without decoder gets.
type spaces struct{ some bool }

func (s *spaces) push(token string, emit func(string)) {
	if s.some {
		emit(" ")
	}
	s.some = true
	emit(token)
}

func (s *spaces) flush(func(string)) {}

// spelled reads the letters of bytes.go; a token with another character in it stands for itself.
type spelled struct{ lossy }

func (s *spelled) push(token string, emit func(string)) {
	bytes, ok := unspell(token)
	if !ok {
		bytes = token
	}
	emit(s.lossy.push(bytes))
}

func (s *spelled) flush(emit func(string)) { emit(s.lossy.flush()) }

// hexBytes turns a run of tokens such as <0xE4> into the text that the bytes are, or into
// one U+FFFD each when they are none.
type hexBytes struct{ run []byte }

func (h *hexBytes) push(token string, emit func(string)) {
	if b, ok := hexByte(token); ok {
		h.run = append(h.run, b)
		return
	}
	h.flush(emit)
	emit(token)
}

func (h *hexBytes) flush(emit func(string)) {
	if utf8.Valid(h.run) {
		if len(h.run) > 0 {
			emit(string(h.run))
		}
	} else {
		for range h.run {
			emit(replacement)
		}
	}
	h.run = h.run[:0]
}

// hexByte reads <0x1F>. Like Rust's from_str_radix it takes a sign for a digit: <0x+F>.
func hexByte(token string) (byte, bool) {
	if len(token) != len("<0x00>") || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(token[3:5], "+"), 16, 8)
	return byte(v), err == nil
}

func (r *decoderReader) readStrip(p part) (func() decoder, error) {
	o, err := p.object("type", "content", "start", "stop")
	if err != nil {
		return nil, err
	}
	content, err := o.text("content")
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(content) != 1 {
		return nil, o.get("content").errorf("%q is not one character", content)
	}
	var start, stop uint16
	if err := o.get("start").into(&start); err != nil {
		return nil, err
	}
	if err := o.get("stop").into(&stop); err != nil {
		return nil, err
	}
	if stop != 0 { // the library fails on texts shorter than that
		return nil, o.get("stop").errorf("%d is not supported, only 0 is", stop)
	}
	return func() decoder { return &strip{content: content, limit: int(start), whole: r.joined, left: int(start)} }, nil
}

// strip takes up to limit of content from the start of each token, or of the whole text.
type strip struct {
	content string
	limit   int
	whole   bool
	left    int // how many may still go from the whole text
}

func (s *strip) push(token string, emit func(string)) {
	if !s.whole {
		s.left = s.limit
	}
	for ; s.left > 0 && token != ""; s.left-- {
		rest, ok := strings.CutPrefix(token, s.content)
		if !ok {
			s.left = 0
			break
		}
		token = rest
	}
	emit(token)
}

func (s *strip) flush(func(string)) {}
