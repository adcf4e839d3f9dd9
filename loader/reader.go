package loader

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
)

// chunk is the bytes read, hashed and reported at a time: small enough to be still in
// cache when it is hashed, large enough to hide the cost of a read.
const chunk = 1 << 20

var errChanged = errors.New("changed since it was opened")

// reader is the first step of a load: it reads shards in order and sends the wanted
// tensors. Each buffer comes from free and goes back there after its upload.
type reader struct {
	snapshot *Snapshot
	wanted   map[string]bool
	progress func(int64)
	free     chan []byte
	out      chan loaded

	file    io.Reader // of the shard at hand
	sum     hash.Hash // of what was read of it
	scratch []byte    // takes the bytes nobody wants
}

func (r *reader) run(ctx context.Context) ([]Digest, error) {
	r.scratch = make([]byte, chunk)
	var digests []Digest
	for _, sh := range r.snapshot.shards {
		d, err := r.shard(ctx, sh)
		if err != nil {
			return nil, err
		}
		digests = append(digests, d)
	}
	return digests, nil
}

// shard reads one file from its first byte to its last.
func (r *reader) shard(ctx context.Context, sh Shard) (Digest, error) {
	f, _, err := openFile(r.snapshot.fsys, sh.Name)
	if err != nil {
		return Digest{}, fmt.Errorf("%s: %w", sh.Name, err)
	}
	defer f.Close()
	r.file, r.sum = f, sha256.New()
	if err := r.header(ctx, sh); err != nil {
		return Digest{}, fmt.Errorf("%s: header: %w", sh.Name, err)
	}
	for _, t := range sh.tensors {
		if err := r.tensor(ctx, t); err != nil {
			return Digest{}, fmt.Errorf("%s: tensor %q: %w", sh.Name, t.Name, err)
		}
	}
	if err := r.end(f, sh); err != nil {
		return Digest{}, fmt.Errorf("%s: %w", sh.Name, err)
	}
	return Digest{Name: sh.Name, Size: sh.Size, SHA256: hex.EncodeToString(r.sum.Sum(nil))}, nil
}

// header passes the header by and asks that it is the one the snapshot was made from.
func (r *reader) header(ctx context.Context, sh Shard) error {
	if err := r.skip(ctx, sh.header); err != nil {
		return err
	}
	if [sha256.Size]byte(r.sum.Sum(nil)) != sh.digest {
		return errChanged
	}
	return nil
}

// end asks that the file ends where it did when it was opened and was not written to.
func (r *reader) end(f fs.File, sh Shard) error {
	if _, err := io.ReadFull(f, r.scratch[:1]); err != io.EOF {
		return fmt.Errorf("longer than %d bytes: %w", sh.Size, errors.Join(errChanged, err))
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != sh.Size || !info.ModTime().Equal(sh.stat.ModTime()) {
		return errChanged
	}
	return nil
}

func (r *reader) tensor(ctx context.Context, t Tensor) error {
	if !r.wanted[t.Name] {
		return r.skip(ctx, t.Size)
	}
	var buf []byte
	select {
	case buf = <-r.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	buf = buf[:t.Size]
	if err := r.fill(ctx, buf); err != nil {
		return err
	}
	select {
	case r.out <- loaded{t, buf}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// skip reads n bytes for the digest alone.
func (r *reader) skip(ctx context.Context, n int64) error {
	for n > 0 {
		part := r.scratch[:min(n, chunk)]
		if err := r.fill(ctx, part); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}

// fill reads, hashes and reports len(buf) bytes, a chunk at a time.
func (r *reader) fill(ctx context.Context, buf []byte) error {
	for len(buf) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r.file, buf[:min(len(buf), chunk)])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return fmt.Errorf("%w: shorter than it was", errChanged)
		}
		if err != nil {
			return err
		}
		r.sum.Write(buf[:n])
		if r.progress != nil {
			r.progress(int64(n))
		}
		buf = buf[n:]
	}
	return nil
}
