package stages

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"

	"tfbatch/internal/row"
	"tfbatch/jobs"
)

var chats = flag.String("chats", "", "a folder that testdata/chats.py run has filled, to be compared too")

// TestChatsAsTransformers holds lines of an input, read and rendered, to what transformers'
// apply_chat_template makes of the same messages.
func TestChatsAsTransformers(t *testing.T) { compareChats(t, "testdata") }

func TestMoreChatsAsTransformers(t *testing.T) {
	if *chats == "" {
		t.Skip("no -chats folder")
	}
	compareChats(t, *chats)
}

// chatSpecial are the named tokens of chats.py's tokenizer.
var chatSpecial = []SpecialToken{{"bos_token", "<|startoftext|>"}, {"eos_token", "<|im_end|>"}, {"unk_token", "<unk>"}, {"pad_token", "<|pad|>"}}

func compareChats(t *testing.T, folder string) {
	packed, err := os.Open(filepath.Join(folder, "chats.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(plain)
	in.Buffer(nil, 1<<24)
	encoders := map[string]*Encoder{}
	cases, failures := 0, 0
	for in.Scan() {
		var c struct {
			Template string
			Line     json.RawMessage
			Text     *string
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		e := encoders[c.Template]
		if e == nil {
			e = chatEncoder(t, c.Template)
			encoders[c.Template] = e
		}
		cases++
		if c.Text == nil {
			failures++
		}
		got, failed := renderLine(e, string(c.Line))
		switch {
		case c.Text == nil && failed == nil:
			t.Errorf("%s: %s\ntransformers fails, we give %q", c.Template, c.Line, got)
		case c.Text != nil && failed != nil:
			t.Errorf("%s: %s\ntransformers gives %q, we fail: %s", c.Template, c.Line, *c.Text, failed.Message)
		case c.Text != nil && got != *c.Text:
			t.Errorf("%s: %s\ntransformers %q\nwe           %q", c.Template, c.Line, *c.Text, got)
		}
	}
	if err := in.Err(); err != nil || len(encoders) == 0 {
		t.Fatalf("%d templates, %v", len(encoders), err)
	}
	t.Logf("%d cases of %d templates, %d of them errors", cases, len(encoders), failures)
}

func chatEncoder(t *testing.T, template string) *Encoder {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "internal", "jinja", "testdata", "templates", template+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSetup(t, "", func(j *jobs.Job) { j.Prompt.Date = "2026-03-07" })
	s.Model.Special = chatSpecial
	e, err := NewEncoder(&s.Job, &s.Model, Templates{Default: string(source)})
	if err != nil {
		t.Fatalf("%s: %v", template, err)
	}
	return e
}

func renderLine(e *Encoder, line string) (string, *row.Error) {
	r := parseLine(line, func(j *jobs.Job) { *j = *e.job })
	if r.Err != nil {
		return "", r.Err
	}
	return e.render(r.Prompt)
}
