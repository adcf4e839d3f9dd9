package dataset

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// lines is a file of JSON lines.
type lines struct {
	out    *bufio.Writer
	enc    *json.Encoder
	format Format
}

func newLines(w io.Writer, f Format) *lines {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return &lines{out, enc, f}
}

func (l *lines) Write(r *Row) error {
	switch l.format {
	case ShareGPT:
		return l.enc.Encode(conversation(r))
	case Speculators:
		return l.masked(r)
	}
	return l.enc.Encode(struct {
		ID       string    `json:"custom_id"`
		Messages []Message `json:"messages"`
	}{r.CustomID, turns(r)})
}

func (l *lines) Close() error { return l.out.Flush() }

// turns is the chat with the reply; a prompt that was plain text counts as a user's.
func turns(r *Row) []Message {
	asked := r.Messages
	if asked == nil {
		asked = []Message{{"user", r.Prompt}}
	}
	return append(slices.Clone(asked), Message{"assistant", r.Completion})
}

// said is a turn as ShareGPT has it.
type said struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// speakers are ShareGPT's names of roles.
var speakers = map[string]string{"user": "human", "assistant": "gpt"}

func conversation(r *Row) any {
	var list []said
	for _, m := range turns(r) {
		from, ok := speakers[m.Role]
		if !ok {
			from = m.Role
		}
		list = append(list, said{from, m.Content})
	}
	return struct {
		ID            string `json:"id"`
		Conversations []said `json:"conversations"`
	}{r.CustomID, list}
}

// masked writes the ids of prompt and reply, and 1 for each that a drafter may learn.
func (l *lines) masked(r *Row) error {
	if r.TokenIDs == nil || r.PromptIDs == nil {
		return errors.New("row " + r.CustomID + " has no token ids; run the job with sampling.return_token_ids: true")
	}
	mask := make([]int8, len(r.PromptIDs)+len(r.TokenIDs))
	for i := len(r.PromptIDs); i < len(mask); i++ {
		mask[i] = 1
	}
	return l.enc.Encode(struct {
		ID   string  `json:"custom_id"`
		IDs  []int32 `json:"input_ids"`
		Mask []int8  `json:"loss_mask"`
	}{r.CustomID, append(slices.Clone(r.PromptIDs), r.TokenIDs...), mask})
}
