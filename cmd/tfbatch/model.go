package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tfbatch/internal/builtin"
	"tfbatch/internal/families"
	"tfbatch/internal/hub"
	"tfbatch/internal/model"
	"tfbatch/internal/regular"
	"tfbatch/internal/row"
	"tfbatch/internal/tokenizer"
	"tfbatch/jobs"
	"tfbatch/loader"
	"tfbatch/stages"
)

// Files of a snapshot beside its weights, and the most that is read of each.
const (
	configFile          = "config.json"
	tokenizerFile       = "tokenizer.json"
	tokenizerConfigFile = "tokenizer_config.json"
	templateFile        = "chat_template.jinja"

	maxTokenizer = 128 << 20 // the largest known has 33 MB
	maxTemplate  = 1 << 20   // the largest known has 20 kB
)

// snapshot is a job's model before any weight is read: headers, tokenizer, template.
type snapshot struct {
	plan     *model.Checkpoint
	stages   stages.Model
	template string // empty when there is none
	files    stages.ModelFiles
}

func openSnapshot(job *jobs.Job) (*snapshot, error) {
	fsys, err := modelFiles(job.Model.Path)
	if err != nil {
		return nil, err
	}
	weights, err := loader.Open(fsys)
	if err != nil {
		return nil, err
	}
	s := &snapshot{}
	if s.plan, err = families.Open(weights); err != nil {
		return nil, err
	}
	config, err := weights.ReadFile(configFile, model.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	s.files = stages.ModelFiles{Arch: s.plan.Info.Arch, Config: sha256.Sum256(config)}
	if err := s.openTokenizer(weights); err != nil {
		return nil, err
	}
	return s, s.openTemplate(weights, job.Prompt.Template)
}

func modelFiles(path jobs.Path) (fs.FS, error) {
	if name, ok := strings.CutPrefix(path.Name, jobs.BuiltinPrefix); ok {
		return builtin.Open(name)
	}
	_, err := os.Stat(path.File)
	if errors.Is(err, fs.ErrNotExist) && hub.IsID(path.Name) {
		return hub.Find(hubCache(), path.Name)
	}
	if err != nil {
		return nil, err
	}
	return hub.Open(path.File)
}

// hubCache is where huggingface_hub keeps what it has downloaded, by the same variables in the same order.
func hubCache() string {
	home, _ := os.UserHomeDir() // without one, the path is relative and nothing is found there
	for _, from := range []struct{ variable, below string }{
		{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}, {"XDG_CACHE_HOME", "huggingface/hub"},
	} {
		if folder := os.Getenv(from.variable); folder != "" {
			if rest, ok := strings.CutPrefix(folder, "~/"); ok {
				folder = filepath.Join(home, rest)
			}
			return filepath.Join(folder, filepath.FromSlash(from.below))
		}
	}
	return filepath.Join(home, ".cache", "huggingface", "hub")
}

func (s *snapshot) openTokenizer(weights *loader.Snapshot) error {
	data, err := weights.ReadFile(tokenizerFile, maxTokenizer)
	if err != nil {
		return err
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		return err
	}
	s.files.Tokenizer = sha256.Sum256(data)
	s.stages = stages.Model{
		Vocab: s.plan.Info.Vocab, Context: s.plan.Info.Context, BOS: -1, EOS: s.plan.Info.EOS,
		Tokenizer: tok, Stream: func() stages.Stream { return tok.VisibleStream() },
		Formats: stages.NewFormats(s.plan.Info.Vocab, tok.Bytes, s.plan.Info.EOS),
	}
	if s.stages.Special, err = specialTokens(weights); err != nil {
		return err
	}
	for _, token := range s.stages.Special {
		if id, ok := tok.ID(token.Text); ok && token.Name == "bos_token" {
			s.stages.BOS = id
		}
	}
	return nil
}

// specialTokens are the tokens that tokenizer_config.json names, as transformers hands them
// to a template: "bos_token": "<s>", or {"content": "<s>", ...}.
func specialTokens(weights *loader.Snapshot) ([]stages.SpecialToken, error) {
	keys, err := tokenizerConfig(weights)
	if err != nil {
		return nil, err
	}
	var list []stages.SpecialToken
	for _, name := range []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"} {
		value, ok := keys[name]
		if !ok || string(value) == "null" {
			continue
		}
		token := struct {
			Content string `json:"content"`
		}{}
		if json.Unmarshal(value, &token.Content) != nil && json.Unmarshal(value, &token) != nil {
			return nil, fmt.Errorf("%s: %s is %s, want a token", tokenizerConfigFile, name, value)
		}
		list = append(list, stages.SpecialToken{Name: name, Text: token.Content})
	}
	return list, nil
}

// tokenizerConfig may be missing: it has nothing that ids depend on.
func tokenizerConfig(weights *loader.Snapshot) (map[string]json.RawMessage, error) {
	data, err := weights.ReadFile(tokenizerConfigFile, model.MaxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", tokenizerConfigFile, err)
	}
	return keys, nil
}

// openTemplate takes the job's own template, or the checkpoint's: a file of its own in newer
// snapshots, a key of tokenizer_config.json in older ones.
func (s *snapshot) openTemplate(weights *loader.Snapshot, own jobs.Path) error {
	var err error
	if own.Name != jobs.TemplateCheckpoint {
		s.template, err = readTemplate(own.File)
	} else {
		s.template, err = checkpointTemplate(weights)
	}
	if err == nil && s.template != "" {
		sum := row.Digest(sha256.Sum256([]byte(s.template)))
		s.files.Template = &sum
	}
	return err
}

func readTemplate(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	if err == nil && len(data) > maxTemplate {
		err = fmt.Errorf("template %s has more than %d bytes", path, maxTemplate)
	}
	return string(data), err
}

func checkpointTemplate(weights *loader.Snapshot) (string, error) {
	data, err := weights.ReadFile(templateFile, maxTemplate)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(data), err
	}
	keys, err := tokenizerConfig(weights)
	if err != nil || keys["chat_template"] == nil {
		return "", err
	}
	return namedTemplate(bytes.TrimSpace(keys["chat_template"]))
}

// namedTemplate reads a template, or the one called default of several.
func namedTemplate(value json.RawMessage) (string, error) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		return one, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(value, &several); err != nil {
		return "", fmt.Errorf("%s: chat_template: %w", tokenizerConfigFile, err)
	}
	for _, t := range several {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", fmt.Errorf("%s: chat_template has %d templates and none called default; set prompt.template to a file", tokenizerConfigFile, len(several))
}

// shardDigests are the files that a load has read.
func shardDigests(list []loader.Digest) ([]stages.FileDigest, error) {
	out := make([]stages.FileDigest, len(list))
	for i, d := range list {
		out[i] = stages.FileDigest{Name: d.Name, Bytes: d.Size}
		if err := out[i].SHA256.UnmarshalText([]byte(d.SHA256)); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return out, nil
}
