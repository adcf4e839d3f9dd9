package stages

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tfbatch/internal/regular"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// maxZstdWindow bounds the memory that a compressed input can ask for: what zstd's own
// command line tool accepts without being told more (--ultra, --long).
const maxZstdWindow = 128 << 20

// source is the input of a job: its bytes, decompressed where the first of them say so.
type source struct {
	file io.Reader // as stored
	text io.Reader // decompressed
	hash hash.Hash // of file
	read atomic.Int64
	size int64 // of file, 0 when it is not known
	done []func() error
}

func openSource(path string, stdin io.Reader) (*source, error) {
	s := &source{hash: sha256.New()}
	if path == jobs.StdinPath {
		if stdin == nil {
			return nil, errors.New("the job read its rows from standard input; name a file that holds them with --input")
		}
		s.file = stdin
	} else {
		f, err := regular.Open(path)
		if err != nil {
			return nil, err
		}
		s.file, s.done = f, append(s.done, f.Close)
		if info, err := f.Stat(); err == nil {
			s.size = info.Size()
		}
	}
	if err := s.sniff(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Read passes on the stored bytes, hashed and counted.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.hash.Write(p[:n])
	s.read.Add(int64(n))
	return n, err
}

// sniff looks at the first bytes: a file's name says nothing about its compression.
func (s *source) sniff() error {
	stored := bufio.NewReaderSize(readOnly{s}, readBuffer)
	head, err := stored.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(stored)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		s.text, s.done = z, append(s.done, z.Close)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		s.text, s.done = z, append(s.done, func() error { z.Close(); return nil })
	default:
		s.text = stored
	}
	return nil
}

// readOnly hides every method but Read.
type readOnly struct{ io.Reader }

// digest is the SHA-256 of the stored bytes; what was not needed of them is read first.
func (s *source) digest() (row.Digest, error) {
	if _, err := io.Copy(io.Discard, readOnly{s}); err != nil {
		return row.Digest{}, err
	}
	return row.Digest(s.hash.Sum(nil)), nil
}

// close frees what open took; the files were only read, so no error is lost data.
func (s *source) close() {
	for i := len(s.done) - 1; i >= 0; i-- {
		_ = s.done[i]()
	}
}
