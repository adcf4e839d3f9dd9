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
	"slices"

	"golang.org/x/sync/errgroup"
)

const (
	// buffers is how many matrices are in memory at once: one is read while the
	// other is encoded or uploaded. A third would add memory and no speed, since
	// reading is the slowest step.
	buffers = 2
	// chunk is the bytes read, hashed and reported at a time: small enough to be
	// still in cache when it is hashed, large enough to hide the cost of a read.
	chunk = 1 << 20
)

// Steps is what [Load] does with tensors. Each function runs on one goroutine of its
// own, so Encode of one tensor overlaps Upload of the one before it.
type Steps[T any] struct {
	// Want says whether a tensor is to be loaded. Others are read for the digest only.
	// It is called once for each tensor, before anything is read.
	Want func(Tensor) bool
	// Encode turns the bytes of a tensor into what Upload takes. The result may share
	// the bytes: they stay as they are until Upload has returned, and not longer.
	Encode func(Tensor, []byte) (T, error)
	// Upload hands a tensor on, in the order of [Snapshot.All].
	Upload func(Tensor, T) error
	// Progress, if not nil, hears how many more bytes were read; they sum to
	// [Snapshot.Bytes].
	Progress func(n int64)
}

// Digest identifies a shard by its content.
type Digest struct {
	Name   string
	Size   int64
	SHA256 string // of the whole file, in hex
}

// Load reads every shard of s once, front to back, and passes the wanted tensors
// through steps: read, encode and upload run side by side. It returns the digest of
// each shard, in the order of [Snapshot.Shards].
//
// Load itself holds two buffers of the largest wanted tensor and one chunk; what
// Encode makes is on top, at most two results at a time. The first error, or the end
// of ctx, stops all three steps before Load returns.
func Load[T any](ctx context.Context, s *Snapshot, steps Steps[T]) ([]Digest, error) {
	wanted, largest := s.choose(steps.Want)
	r := &reader{snapshot: s, wanted: wanted, progress: steps.Progress, out: make(chan loaded), free: make(chan []byte, buffers)}
	for range buffers {
		r.free <- make([]byte, largest)
	}
	encoded := make(chan uploadable[T])
	g, ctx := errgroup.WithContext(ctx)
	var digests []Digest
	g.Go(func() (err error) {
		defer close(r.out)
		digests, err = r.run(ctx)
		return err
	})
	g.Go(func() error {
		defer close(encoded)
		return encode(ctx, r.out, encoded, steps.Encode)
	})
	g.Go(func() error { return upload(ctx, encoded, r.free, steps.Upload) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return digests, nil
}

// choose asks for every tensor whether it is wanted, and finds the largest size.
func (s *Snapshot) choose(want func(Tensor) bool) (wanted map[string]bool, largest int64) {
	wanted = make(map[string]bool)
	for _, t := range s.tensors {
		if want(t) {
			wanted[t.Name] = true
			largest = max(largest, t.Size)
		}
	}
	return wanted, largest
}

// loaded is a tensor with its bytes, in a buffer of the reader's.
type loaded struct {
	Tensor
	data []byte
}

// uploadable is a tensor after Encode; data goes back to the reader after Upload.
type uploadable[T any] struct {
	loaded
	value T
}

func encode[T any](ctx context.Context, in <-chan loaded, out chan<- uploadable[T], step func(Tensor, []byte) (T, error)) error {
	for t := range in {
		v, err := step(t.Tensor, slices.Clip(t.data))
		if err != nil {
			return fmt.Errorf("%s: tensor %q: encode: %w", t.Shard, t.Name, err)
		}
		select {
		case out <- uploadable[T]{t, v}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func upload[T any](ctx context.Context, in <-chan uploadable[T], free chan<- []byte, step func(Tensor, T) error) error {
	for t := range in {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(t.Tensor, t.value); err != nil {
			return fmt.Errorf("%s: tensor %q: upload: %w", t.Shard, t.Name, err)
		}
		free <- t.data[:cap(t.data)] // never blocks: it has room for every buffer
	}
	return nil
}

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

var errChanged = errors.New("changed since it was opened")

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
