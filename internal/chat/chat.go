// Package chat reads what a checkpoint says of text beside its weights: its tokenizer, the chat templates, the special
// tokens that they know by name, and the sampling that its makers suggest. It renders nothing.
//
// Start with [Open] and [Tokenizer]. Where several files say the same thing the one that transformers (5.24) takes wins.
package chat

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"tfbatch/loader"
)

// Files that are read, and the most that is read of each.
const (
	templateFile     = "chat_template.jinja"
	templateFolder   = "additional_chat_templates"
	oldTemplateFile  = "chat_template.json"
	tokenizerConfig  = "tokenizer_config.json"
	specialTokensMap = "special_tokens_map.json"
	generationFile   = "generation_config.json"

	MaxTemplate  = 1 << 20 // bytes; the largest known template has 25 kB
	maxConfig    = 16 << 20
	maxTemplates = 64
	maxToken     = 8 << 10
)

// Chat is what a checkpoint says. Any of it may be missing.
type Chat struct {
	Template  string   // empty when there is none
	Tools     string   // the template of conversations with tools, where they have their own
	From      string   // the file that the templates are from
	Special   []Token  // the usual ones in transformers' order, then those of this model alone
	Suggested []Choice // of generation_config.json, in order of name; nothing here follows them
}

// Token is a special token that templates know by name, such as bos_token.
type Token struct{ Name, Text string }

// Choice is one sampling setting.
type Choice struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// String is how a job file would write it: "top_p: 0.95".
func (c Choice) String() string { return c.Name + ": " + string(c.Value) }

// Open reads the files beside the weights.
func Open(s *loader.Snapshot) (*Chat, error) {
	config, err := readObject(s, tokenizerConfig)
	if err != nil {
		return nil, err
	}
	c := &Chat{}
	if err := c.templates(s, config); err != nil {
		return nil, err
	}
	if c.Special, err = namedTokens(s, config); err != nil {
		return nil, err
	}
	return c, c.suggested(s)
}

// templates takes files of their own first, then tokenizer_config.json, then the file that older processors had.
func (c *Chat) templates(s *loader.Snapshot, config map[string]json.RawMessage) error {
	named, err := templateFiles(s)
	if err != nil {
		return err
	}
	if c.From = templateFile; len(named) == 0 {
		c.From = tokenizerConfig
		named, err = namedTemplates(c.From, config)
	}
	if err == nil && len(named) == 0 {
		c.From = oldTemplateFile
		if config, err = readObject(s, c.From); err == nil {
			named, err = namedTemplates(c.From, config)
		}
	}
	if err != nil || len(named) == 0 {
		c.From = ""
		return err
	}
	c.Template, c.Tools = named[defaultName], named[toolsName]
	if c.Template == "" && c.Tools == "" {
		return fmt.Errorf("%s: the chat templates are called %.100s and none %s; set prompt.template to a file", c.From, strings.Join(slices.Sorted(maps.Keys(named)), ", "), defaultName)
	}
	return nil
}

// Digest names a pair of templates, of which tools may be empty.
func Digest(template, tools string) [sha256.Size]byte {
	if tools != "" {
		template += "\x00" + tools
	}
	return sha256.Sum256([]byte(template))
}

// Names of templates that are taken without being asked for.
const (
	defaultName = "default"
	toolsName   = "tool_use"
)

// templateFiles are chat_template.jinja and those of additional_chat_templates, by name.
func templateFiles(s *loader.Snapshot) (map[string]string, error) {
	named := map[string]string{}
	data, err := s.ReadFile(templateFile, MaxTemplate)
	switch {
	case err == nil:
		named[defaultName] = string(data)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	names, err := s.Names(templateFolder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templateFolder, err)
	}
	if len(names) > maxTemplates {
		return nil, fmt.Errorf("%s has %d files, at most %d are read", templateFolder, len(names), maxTemplates)
	}
	for _, file := range names {
		name, ok := strings.CutSuffix(file, ".jinja")
		if !ok {
			continue
		}
		data, err := s.ReadFile(templateFolder+"/"+file, MaxTemplate)
		if err != nil {
			return nil, err
		}
		named[name] = string(data)
	}
	return named, nil
}

// namedTemplates reads a key that holds one template, or a list of several.
func namedTemplates(file string, config map[string]json.RawMessage) (map[string]string, error) {
	value := config["chat_template"]
	if value == nil || string(value) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return map[string]string{defaultName: one}, bounded(file, one)
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(value, &several); err != nil {
		return nil, fmt.Errorf("%s: chat_template: %w", file, err)
	}
	named := map[string]string{}
	for _, t := range several {
		if err := bounded(file, t.Template); err != nil {
			return nil, err
		}
		named[t.Name] = t.Template
	}
	return named, nil
}

func bounded(file, template string) error {
	if len(template) > MaxTemplate {
		return fmt.Errorf("%s: chat_template has %d bytes, at most %d are read", file, len(template), MaxTemplate)
	}
	return nil
}

// usualTokens are the names that templates know, in transformers' order.
var usualTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// namedTokens reads the named tokens: "bos_token": "<s>", or {"content": "<s>", ...}. Older checkpoints keep them in
// special_tokens_map.json, which counts where tokenizer_config.json does not list its tokens.
func namedTokens(s *loader.Snapshot, config map[string]json.RawMessage) (list []Token, err error) {
	files := map[string]map[string]json.RawMessage{tokenizerConfig: config}
	order := []string{tokenizerConfig}
	if _, listed := config["added_tokens_decoder"]; !listed {
		older, err := readObject(s, specialTokensMap)
		if err != nil {
			return nil, err
		}
		files[specialTokensMap], order = older, []string{specialTokensMap, tokenizerConfig}
	}
	for _, name := range usualTokens {
		for _, file := range order {
			value, ok := files[file][name]
			if !ok {
				continue
			}
			text, err := tokenText(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %s is %.100s, want a token", file, name, value)
			}
			if text != nil {
				list = append(list, Token{name, *text})
			}
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config)) { // what a model has beside the usual ones: image_token
		var text string
		if strings.HasSuffix(name, "_token") && !slices.Contains(usualTokens, name) && json.Unmarshal(config[name], &text) == nil && text != "" && len(text) <= maxToken {
			list = append(list, Token{name, text})
		}
	}
	return list, nil
}

// tokenText is nil for null.
func tokenText(value json.RawMessage) (*string, error) {
	var text *string
	if json.Unmarshal(value, &text) != nil {
		var token struct {
			Content *string `json:"content"`
		}
		if err := json.Unmarshal(value, &token); err != nil || token.Content == nil {
			return nil, errors.Join(err, errors.New("no content"))
		}
		text = token.Content
	}
	if text != nil && len(*text) > maxToken {
		return nil, errors.New("too long")
	}
	return text, nil
}

// Token finds the text of a named token.
func (c *Chat) Token(name string) (string, bool) {
	i := slices.IndexFunc(c.Special, func(t Token) bool { return t.Name == name })
	if i < 0 {
		return "", false
	}
	return c.Special[i].Text, true
}

// choices are the keys of generation_config.json that say how to draw.
var choices = [...]string{
	"do_sample", "frequency_penalty", "max_length", "max_new_tokens", "min_p", "presence_penalty", "repetition_penalty", "temperature", "top_k", "top_p",
}

func (c *Chat) suggested(s *loader.Snapshot) error {
	config, err := readObject(s, generationFile)
	if err != nil {
		return err
	}
	for _, name := range choices {
		value := config[name]
		if value == nil || string(value) == "null" {
			continue
		}
		if strings.ContainsAny(string(value[:1]), `[{"`) {
			return fmt.Errorf("%s: %s is %.40s, want a number, true or false", generationFile, name, value)
		}
		c.Suggested = append(c.Suggested, Choice{name, value})
	}
	return nil
}

// readObject is nil where there is no such file.
func readObject(s *loader.Snapshot, name string) (map[string]json.RawMessage, error) {
	data, err := s.ReadFile(name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return keys, nil
}
