package chat

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

const (
	tokenizerFile = "tokenizer.json"
	maxTokenizer  = 128 << 20 // bytes; the largest known has 33 MB
)

// Tokenizer reads tokenizer.json, with the tokens that tokenizer_config.json adds to it, and gives the digest of its
// bytes too.
func Tokenizer(s *loader.Snapshot) (*tokenizer.Tokenizer, [sha256.Size]byte, error) {
	data, err := s.ReadFile(tokenizerFile, maxTokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no %s; other tokenizer files are not read: load them with AutoTokenizer of transformers and save_pretrained writes one: %w", tokenizerFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	more, err := addedTokens(s)
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	t, err := tokenizer.ParseWith(data, more)
	return t, sha256.Sum256(data), err
}

// addedTokens are what transformers adds to the tokens of tokenizer.json: the list of tokenizer_config.json, and
// special tokens that are named there and in no list.
func addedTokens(s *loader.Snapshot) (more tokenizer.More, err error) {
	config, err := readObject(s, tokenizerConfig)
	if err != nil {
		return more, err
	}
	if more.Listed, err = listedTokens(config["added_tokens_decoder"]); err != nil {
		return more, err
	}
	named, err := namedTokens(s, config)
	if err != nil {
		return more, err
	}
	for _, t := range named {
		more.Named = append(more.Named, t.Text)
	}
	more.Further, err = furtherTokens(config)
	return more, err
}

// listedTokens reads {"7": {"content": "<|im_end|>", ...}} in order of id.
func listedTokens(value json.RawMessage) ([]tokenizer.Added, error) {
	var byID map[int32]struct {
		tokenizer.Added
		Normalized *bool `json:"normalized"` // by default what special is not
	}
	if len(value) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(value, &byID); err != nil {
		return nil, fmt.Errorf("%s: added_tokens_decoder: %w", tokenizerConfig, err)
	}
	var list []tokenizer.Added
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		t := byID[id]
		t.Added.Normalized = !t.Special
		if t.Normalized != nil {
			t.Added.Normalized = *t.Normalized
		}
		list = append(list, t.Added)
	}
	return list, nil
}

// furtherTokens are special tokens without a name.
func furtherTokens(config map[string]json.RawMessage) (texts []string, err error) {
	for _, key := range []string{"extra_special_tokens", "additional_special_tokens"} {
		value := config[key]
		if len(value) == 0 || value[0] != '[' {
			continue
		}
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", tokenizerConfig, key, err)
		}
		for _, v := range list {
			text, err := tokenText(v)
			if err != nil || text == nil {
				return nil, fmt.Errorf("%s: %s holds %.100s, want a token", tokenizerConfig, key, v)
			}
			texts = append(texts, *text)
		}
		if len(texts) > 0 {
			break
		}
	}
	return texts, nil
}
