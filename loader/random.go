package loader

import (
	"fmt"
	"io"
	"slices"
)

// ReadTensor reads one tensor out of the turn that [Load] keeps: the scales of a matrix while its codes
// are at hand, say. The result uses buf where that is large enough, and counts in no digest. Where a file is no
// io.ReaderAt, as those of [Dir] are, all that stands before the tensor is read too.
func (s *Snapshot) ReadTensor(name string, buf []byte) ([]byte, error) {
	t, ok := s.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("no tensor %q", name)
	}
	buf = slices.Grow(buf[:0], int(t.Size))[:t.Size]
	if err := s.readAt(t, buf); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", t.Shard, name, err)
	}
	return buf, nil
}

func (s *Snapshot) readAt(t Tensor, buf []byte) error {
	f, info, err := openFile(s.fsys, t.Shard)
	if err != nil {
		return err
	}
	defer f.Close()
	sh := s.shards[slices.IndexFunc(s.shards, func(sh Shard) bool { return sh.Name == t.Shard })]
	if info.Size() != sh.Size || !info.ModTime().Equal(sh.stat.ModTime()) {
		return errChanged
	}
	if r, ok := f.(io.ReaderAt); ok {
		if n, err := r.ReadAt(buf, t.Offset); n < len(buf) {
			return err
		}
		return nil
	}
	if _, err := io.CopyN(io.Discard, f, t.Offset); err != nil {
		return err
	}
	_, err = io.ReadFull(f, buf)
	return err
}
