package builtin

import (
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/klauspost/compress/zstd"
)

// file is one packed file while it is read.
type file struct {
	decoder *zstd.Decoder
	r       io.Reader
	info    info
}

func (f *file) Read(p []byte) (int, error) { return f.r.Read(p) }
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { f.decoder.Close(); return nil }

// info describes a file. Its time is zero: it is as old as the binary.
type info struct {
	name string
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }

// block is the bytes of weights that are packed together: the low byte of each bf16 value
// first, then the high bytes. High bytes (sign and most of the exponent) compress
// to a third, low bytes hardly; apart they take 12 % less than mixed. A block is
// two zstd blocks of 128 KiB, so each kind gets its own code table. pack.go splits.
const block = 256 << 10

// joiner undoes the split: r yields blocks of low bytes and high bytes, Read pairs.
type joiner struct {
	r     io.Reader
	split []byte // a block as packed
	whole []byte // the same block, joined
	pairs []byte // what of whole is not yet read
	err   error
}

func (j *joiner) Read(p []byte) (int, error) {
	if len(j.pairs) == 0 && j.err == nil {
		j.next()
	}
	n := copy(p, j.pairs)
	j.pairs = j.pairs[n:]
	if n == 0 && len(p) > 0 {
		return 0, j.err
	}
	return n, nil
}

// next joins the following block; the last one may be short.
func (j *joiner) next() {
	if j.split == nil {
		j.split, j.whole = make([]byte, block), make([]byte, block)
	}
	n, err := io.ReadFull(j.r, j.split)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	j.err = err
	j.pairs = j.whole[:n]
	low, high := j.split[:(n+1)/2], j.split[(n+1)/2:n]
	for i, b := range low {
		j.pairs[2*i] = b
	}
	for i, b := range high {
		j.pairs[2*i+1] = b
	}
}
