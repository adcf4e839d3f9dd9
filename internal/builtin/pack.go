//go:build ignore

// Pack copies a model's folder into models/, each file compressed, with the digests of
// the originals in SHA256SUMS:
//
//	go run pack.go path/to/gopher-15m
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// block is what file.go takes apart. The window is as large: weights do not repeat
// further back, and the reader's memory is a window.
const block = 256 << 10

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run pack.go <folder of a model>")
	}
	if err := pack(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func pack(from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	to := filepath.Join("models", filepath.Base(from))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(raw), e.Name())
		if filepath.Ext(e.Name()) == ".safetensors" {
			raw = split(raw)
		}
		if err := compress(filepath.Join(to, e.Name()+".zst"), raw); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(to, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// compress writes raw as one frame. A single segment is how the size of a small file gets
// into its frame, where the reader looks for it.
func compress(path string, raw []byte) error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(block), zstd.WithSingleSegment(len(raw) <= block))
	if err != nil {
		return err
	}
	return os.WriteFile(path, enc.EncodeAll(raw, nil), 0o644)
}

// split puts the even bytes of each block before its odd ones.
func split(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		part := raw[:min(block, len(raw))]
		for first := range 2 {
			for i := first; i < len(part); i += 2 {
				out = append(out, part[i])
			}
		}
		raw = raw[len(part):]
	}
	return out
}
