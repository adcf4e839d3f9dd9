package chat

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"tfbatch/internal/tokenizer"
	"tfbatch/loader"
)

const (
	tokenizerFile = "tokenizer.json"
	maxTokenizer  = 128 << 20 // bytes; the largest known has 33 MB
)

// Tokenizer reads tokenizer.json, and gives the digest of its bytes too.
func Tokenizer(s *loader.Snapshot) (*tokenizer.Tokenizer, [sha256.Size]byte, error) {
	data, err := s.ReadFile(tokenizerFile, maxTokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no %s; other tokenizer files are not read: load them with AutoTokenizer of transformers and save_pretrained writes one: %w", tokenizerFile, fs.ErrNotExist)
	}
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	t, err := tokenizer.Parse(data)
	return t, sha256.Sum256(data), err
}
