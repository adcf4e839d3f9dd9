package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"tfbatch/internal/grammar"
)

// Formats makes constraints of what rows ask for as response_format. Goroutines share it.
type Formats struct {
	vocab func() (*grammar.Vocab, error)

	mu    sync.Mutex
	known map[string]*grammar.Masks
}

// maxFormats is how many formats are kept: most jobs have one, and a grammar with its masks may take 100 MB.
const maxFormats = 8

// NewFormats is for a model with size ids, of which text is the bytes, empty for one that is no text, and with end
// among them, which end a reply. The vocabulary is sorted when the first row needs it.
func NewFormats(size int, text func(id int32) string, end []int32) *Formats {
	return &Formats{
		vocab: sync.OnceValues(func() (*grammar.Vocab, error) { return grammar.NewVocab(size, text, end) }),
		known: map[string]*grammar.Masks{},
	}
}

// of is what raw, a response_format, allows. Nil is any text.
func (f *Formats) of(raw json.RawMessage) (*grammar.Masks, error) {
	if raw == nil {
		return nil, nil
	}
	if f == nil {
		return nil, errors.New("the model's tokens are not known as bytes")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.known[string(raw)]; ok {
		return m, nil
	}
	g, err := readFormat(raw)
	if g == nil || err != nil {
		return nil, err
	}
	vocab, err := f.vocab()
	if err != nil {
		return nil, err
	}
	if len(f.known) == maxFormats {
		clear(f.known)
	}
	m := g.With(vocab)
	f.known[string(raw)] = m
	return m, nil
}

// format is OpenAI's response_format, with regex and choice beside its types, as vLLM has them.
type format struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
	Regex  *string  `json:"regex"`
	Choice []string `json:"choice"`
}

func readFormat(raw json.RawMessage) (*grammar.Grammar, error) {
	var f format
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return grammar.JSONObject()
	case "json_schema":
		if f.JSONSchema == nil || f.JSONSchema.Schema == nil {
			return nil, errors.New("json_schema.schema is missing")
		}
		return grammar.JSONSchema(f.JSONSchema.Schema)
	case "regex":
		if f.Regex == nil {
			return nil, errors.New("regex is missing")
		}
		return grammar.Regex(*f.Regex)
	case "choice":
		return grammar.Choice(f.Choice)
	}
	return nil, fmt.Errorf("type is %q, want text, json_object, json_schema, regex or choice", clip(f.Type))
}
