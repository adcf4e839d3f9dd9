package stages

import (
	"context"
	"io"
)

// interruptible reads in until ctx is done. A read that blocks, on a terminal or a pipe,
// cannot be broken off; it is left behind, and the run ends without it.
func interruptible(ctx context.Context, in io.Reader) io.Reader {
	return &interruptibleReader{ctx: ctx, in: in, results: make(chan readResult, 1)}
}

type interruptibleReader struct {
	ctx     context.Context
	in      io.Reader
	buf     []byte
	results chan readResult
}

type readResult struct {
	n   int
	err error
}

// Read reads into a buffer of its own, since a read that was left behind may still write to it.
func (r *interruptibleReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.buf) < len(p) {
		r.buf = make([]byte, len(p))
	}
	buf := r.buf[:len(p)]
	go func() {
		n, err := r.in.Read(buf)
		r.results <- readResult{n, err}
	}()
	select {
	case got := <-r.results:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
