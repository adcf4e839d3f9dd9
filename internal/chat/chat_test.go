package chat_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tfbatch/internal/chat"
	"tfbatch/loader"
)

func open(t *testing.T, files map[string]string) (*chat.Chat, error) {
	t.Helper()
	return chat.Open(snapshot(t, files))
}

// compareTexts holds the tokenizer to what transformers answers.
func compareTexts(t *testing.T, s *loader.Snapshot, texts []string, answers [][2]json.RawMessage) {
	t.Helper()
	tokens, _, err := chat.Tokenizer(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		var ids []int32
		var shown string
		if err := errors.Join(json.Unmarshal(answers[i][0], &ids), json.Unmarshal(answers[i][1], &shown)); err != nil {
			t.Fatal(err)
		}
		if got := tokens.Encode(text); !slices.Equal(got, ids) || tokens.DecodeVisible(got) != shown {
			t.Errorf("%q is %v, %q; transformers has %v, %q", text, got, tokens.DecodeVisible(got), ids, shown)
		}
	}
}

// snapshot is a checkpoint of no weights.
func snapshot(t *testing.T, files map[string]string) *loader.Snapshot {
	t.Helper()
	header := binary.LittleEndian.AppendUint64(nil, 2)
	folder := fstest.MapFS{"model.safetensors": {Data: append(header, "{}"...)}}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := loader.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFoldersAsTransformers holds what is found where to testdata/oracle.py.
func TestFoldersAsTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/folders.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name           string
		Files          map[string]json.RawMessage
		Default, Tools string
		Special        map[string]string
		Texts          []string
		Answers        [][2]json.RawMessage // ids, and the text that they show
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			files := map[string]string{}
			for name, raw := range c.Files {
				var text string
				if json.Unmarshal(raw, &text) != nil {
					text = string(raw)
				}
				files[name] = text
			}
			s := snapshot(t, files)
			got, err := chat.Open(s)
			if err != nil {
				t.Fatal(err)
			}
			if c.Texts != nil {
				compareTexts(t, s, c.Texts, c.Answers)
			}
			tools := got.Tools
			if tools == "" {
				tools = got.Template
			}
			if got.Template != c.Default || tools != c.Tools || (got.From == "") != (c.Tools == "") {
				t.Errorf("found %q and %q in %q", got.Template, tools, got.From)
			}
			special := map[string]string{}
			for _, token := range got.Special {
				special[token.Name] = token.Text
			}
			if !maps.Equal(special, c.Special) {
				t.Errorf("tokens %q, want %q", special, c.Special)
			}
		})
	}
}

func TestSuggestedSampling(t *testing.T) {
	c, err := open(t, map[string]string{"generation_config.json": `{"top_p": 0.95, "eos_token_id": [1, 2], "do_sample": true, "temperature": 0.60, "top_k": null, "other": {}}`})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range c.Suggested {
		list = append(list, s.Name+" "+string(s.Value))
	}
	if got, want := strings.Join(list, ", "), "do_sample true, temperature 0.60, top_p 0.95"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBrokenFilesAreNamed(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"tokenizer_config.json", `{`, "tokenizer_config.json: unexpected end"},
		{"tokenizer_config.json", `{"bos_token": 3}`, "tokenizer_config.json: bos_token is 3, want a token"},
		{"tokenizer_config.json", `{"bos_token": {"text": "x"}}`, "want a token"},
		{"tokenizer_config.json", `{"chat_template": 3}`, "tokenizer_config.json: chat_template: "},
		{"tokenizer_config.json", `{"chat_template": [{"name": "rag", "template": "x"}]}`, "the chat templates are called rag and none default"},
		{"tokenizer_config.json", strings.Repeat("[", 20000), "exceeded max depth"},
		{"special_tokens_map.json", `[]`, "special_tokens_map.json: "},
		{"chat_template.json", `{"chat_template": {}}`, "chat_template.json: chat_template: "},
		{"chat_template.jinja", strings.Repeat("x", chat.MaxTemplate+1), "chat_template.jinja has 1048577 bytes, at most 1048576"},
		{"tokenizer_config.json", `{"chat_template": "` + strings.Repeat("x", chat.MaxTemplate+1) + `"}`, "chat_template has 1048577 bytes"},
		{"generation_config.json", `{"temperature": "hot"}`, `generation_config.json: temperature is "hot", want a number`},
		{"generation_config.json", `3`, "generation_config.json: "},
	} {
		if _, err := open(t, map[string]string{c.file: c.text}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.60s: %v, want %s", c.file, c.text, err, c.want)
		}
	}
}
