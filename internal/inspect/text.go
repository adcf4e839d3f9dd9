package inspect

import (
	"encoding/hex"
	"fmt"

	"tfbatch/internal/chat"
	"tfbatch/internal/jinja"
	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

// Text is what turns text into tokens and back, beside the weights.
type Text struct {
	Tokenizer string        `json:"tokenizer_sha256,omitempty"`
	Tokens    int           `json:"tokens"` // one more than the highest id; the vocabulary may be larger
	Ends      []End         `json:"ends_at"`
	From      string        `json:"template_file,omitempty"`
	Template  string        `json:"template_sha256,omitempty"`
	Tools     bool          `json:"template_for_tools"` // there is one of its own
	Suggested []chat.Choice `json:"suggested_sampling"`
	Refused   string        `json:"refused,omitempty"` // why tfbatch does not run jobs with it
}

// End is a token that ends a reply.
type End struct {
	ID   int32  `json:"id"`
	Text string `json:"text"`
}

func (e End) String() string { return fmt.Sprintf("%q (%d)", e.Text, e.ID) }

// Ends are the tokens of ids.
func Ends(t *tokenizer.Tokenizer, ids []int32) []End {
	list := make([]End, len(ids))
	for i, id := range ids {
		text, _ := t.Token(id) // empty where the vocabulary is larger than the tokenizer
		list[i] = End{id, text}
	}
	return list
}

// readText reads as far as it can; the first thing that a run would stop at is the refusal.
func readText(s *loader.Snapshot, eos []int32) *Text {
	t := &Text{Ends: []End{}, Suggested: []chat.Choice{}}
	if err := t.read(s, eos); err != nil {
		t.Refused = err.Error()
	}
	return t
}

func (t *Text) read(s *loader.Snapshot, eos []int32) error {
	tokens, digest, err := chat.Tokenizer(s)
	if err != nil {
		return err
	}
	t.Tokenizer, t.Tokens = hex.EncodeToString(digest[:]), tokens.Size()
	c, err := chat.Open(s)
	if err != nil {
		return err
	}
	if text, ok := c.Token("eos_token"); ok && len(eos) == 0 {
		if id, ok := tokens.ID(text); ok {
			eos = []int32{id}
		}
	}
	t.Ends = Ends(tokens, eos)
	t.Suggested = append(t.Suggested, c.Suggested...)
	return t.template(c)
}

func (t *Text) template(c *chat.Chat) error {
	if c.From == "" {
		return nil
	}
	sum := chat.Digest(c.Template, c.Tools)
	t.From, t.Template, t.Tools = c.From, hex.EncodeToString(sum[:]), c.Tools != ""
	for _, text := range []string{c.Template, c.Tools} {
		if _, err := jinja.Parse(c.From, text); err != nil {
			return err
		}
	}
	return nil
}

// Runs is whether nothing in the report is refused.
func (r *Report) Runs() bool {
	return r.Refused == "" && (r.Text == nil || r.Text.Refused == "") && (r.Drafter == nil || r.Drafter.Refused == "")
}
