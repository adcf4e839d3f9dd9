package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tfbatch/internal/builtin"
	"tfbatch/internal/chat"
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

const configFile = "config.json"

// snapshot is a job's model before any weight is read: headers, tokenizer, template.
type snapshot struct {
	plan      *model.Checkpoint
	tokens    *tokenizer.Tokenizer
	chat      *chat.Chat
	stages    stages.Model
	templates stages.Templates
	files     stages.ModelFiles
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
	return s, s.openTemplates(job.Prompt.Template)
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
	tok, digest, err := chat.Tokenizer(weights)
	if err != nil {
		return err
	}
	s.tokens, s.files.Tokenizer = tok, digest
	s.stages = stages.Model{
		Vocab: s.plan.Info.Vocab, Context: s.plan.Info.Context, BOS: -1, EOS: s.plan.Info.EOS,
		Tokenizer: tok, Stream: func() stages.Stream { return tok.VisibleStream() },
	}
	if s.chat, err = chat.Open(weights); err != nil {
		return err
	}
	for _, token := range s.chat.Special {
		s.stages.Special = append(s.stages.Special, stages.SpecialToken(token))
	}
	if id, ok := s.namedID("bos_token"); ok {
		s.stages.BOS = id
	}
	if id, ok := s.namedID("eos_token"); ok && len(s.stages.EOS) == 0 { // neither config ends a reply
		s.stages.EOS = []int32{id}
	}
	s.stages.Formats = stages.NewFormats(s.plan.Info.Vocab, tok.Bytes, s.stages.EOS)
	return nil
}

// namedID is the id of a token that templates know by name.
func (s *snapshot) namedID(name string) (int32, bool) {
	text, ok := s.chat.Token(name)
	if !ok {
		return 0, false
	}
	id, ok := s.tokens.ID(text)
	return id, ok && int(id) < s.plan.Info.Vocab
}

// openTemplates takes the job's own template, or the checkpoint's.
func (s *snapshot) openTemplates(own jobs.Path) (err error) {
	s.templates = stages.Templates{From: s.chat.From, Default: s.chat.Template, Tools: s.chat.Tools}
	if own.Name != jobs.TemplateCheckpoint {
		s.templates = stages.Templates{}
		if s.templates.Default, err = readTemplate(own.File); err != nil {
			return err
		}
	}
	if t := s.templates; t.Default+t.Tools != "" {
		sum := row.Digest(chat.Digest(t.Default, t.Tools))
		s.files.Template = &sum
	}
	return nil
}

func readTemplate(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, chat.MaxTemplate+1))
	if err == nil && len(data) > chat.MaxTemplate {
		err = fmt.Errorf("template %s has more than %d bytes", path, chat.MaxTemplate)
	}
	return string(data), err
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

// digests reads every shard for its digest alone.
func (s *snapshot) digests(ctx context.Context, loading func(total int64) func(n int64)) ([]stages.FileDigest, error) {
	list, err := loader.Load(ctx, s.plan.Tensors, loader.Steps[struct{}]{
		Want: func(loader.Tensor) bool { return false }, Progress: loading(s.plan.Tensors.Bytes()),
	})
	if err != nil {
		return nil, err
	}
	return shardDigests(list)
}
