package loader

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// buffers is how many matrices are in memory at once: one is read while the other is
// encoded and uploaded. A third would keep reading while two others are in encode and
// in upload, and cost another of the largest matrix; two is what the package promises.
const buffers = 2

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
// Load itself holds two buffers of the largest wanted tensor and one of 1 MiB; what
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
