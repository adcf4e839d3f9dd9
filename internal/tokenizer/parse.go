package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// Limits on a tokenizer.json, each several times what the largest known model needs.
const (
	maxFile   = 128 << 20 // bytes; gpt-oss and Gemma have 28 to 33 MB
	maxTokens = 1 << 20   // ids; Gemma has 262,145
	maxMerges = 2 << 20   // Gemma has 514,906
	maxToken  = 8 << 10   // bytes of one token; 128 spaces are usual
	maxAdded  = 1 << 16   // added tokens; Gemma has 6,415
	maxMark   = 256       // bytes of one added token: bounds the search for them per byte of text
	maxSteps  = 64        // normalizers, pre-tokenizers, decoders of one file
	maxNested = 8         // sequences inside sequences
	maxItems  = maxAdded  // of any list but the merges
)

// Parse reads a tokenizer.json. The bytes may be changed afterwards.
func Parse(file []byte) (*Tokenizer, error) { return ParseWith(file, More{}) }

// ParseWith is Parse with more added tokens than the file has.
func ParseWith(file []byte, more More) (*Tokenizer, error) {
	t, err := parse(file, more)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

func parse(file []byte, more More) (*Tokenizer, error) {
	if len(file) > maxFile {
		return nil, fmt.Errorf("%d bytes, limit is %d", len(file), maxFile)
	}
	if !utf8.Valid(file) {
		return nil, fmt.Errorf("not valid UTF-8")
	}
	root, err := part{raw: file}.object("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
	if err != nil {
		return nil, err
	}
	if err := root.only("version", `"1.0"`); err != nil {
		return nil, err
	}
	t := &Tokenizer{ids: map[string]int32{}}
	t.scratch.New = func() any { return t.newScratch() }
	return t, t.read(root, more)
}

// read fills t part by part; later parts need the ones before.
func (t *Tokenizer) read(root object, more More) (err error) {
	if t.normalizer, err = readNormalizer(root.get("normalizer"), nil, 0); err != nil {
		return err
	}
	growth := 1
	for _, r := range t.normalizer {
		if growth, err = grown(growth, root.get("normalizer"), r.growth); err != nil {
			return err
		}
	}
	if t.steps, err = readSplitter(root.get("pre_tokenizer"), nil, 0); err != nil {
		return err
	}
	for _, s := range t.steps {
		if _, spells := s.(alphabet); spells {
			if growth, err = grown(growth, root.get("pre_tokenizer"), 2); err != nil {
				return err
			}
		}
	}
	bytes := false
	if n := len(t.steps); n > 0 {
		if _, bytes = t.steps[n-1].(alphabet); bytes {
			t.steps = t.steps[:n-1] // the model takes raw bytes itself
		}
	}
	if t.model, err = t.readModel(root.get("model"), bytes); err != nil {
		return err
	}
	if err := t.readAdded(root.get("added_tokens"), more); err != nil {
		return err
	}
	if t.frame, err = t.readFrame(root.get("post_processor"), 0); err != nil {
		return err
	}
	t.decoders, err = readDecoder(root.get("decoder"))
	return err
}

// name gives id a meaning; the first one stays.
func (t *Tokenizer) name(p part, text string, id int64) error {
	if id < 0 || id >= maxTokens {
		return p.errorf("id %d of %q is outside 0 to %d", id, text, maxTokens-1)
	}
	if len(text) > maxToken {
		return p.errorf("token %d has %d bytes, limit is %d", id, len(text), maxToken)
	}
	for int64(len(t.tokens)) <= id {
		t.tokens = append(t.tokens, token{})
	}
	if old := t.tokens[id]; old.known {
		return p.errorf("id %d stands for %q and %q", id, old.text, text)
	}
	t.tokens[id] = token{text: text, known: true}
	t.ids[text] = int32(id)
	return nil
}
