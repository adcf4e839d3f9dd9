package loader

import (
	"fmt"
	"io"
	"slices"
)

// ReadTensor reads one tensor out of the turn that [Load] keeps: the scales of a matrix while its codes
// are at hand, say. The result uses buf where that is large enough. It takes a file system whose files
// are io.ReaderAt, as those of [Dir] are, and counts in no digest.
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
	r, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("cannot be read out of turn from a %T", f)
	}
	if n, err := r.ReadAt(buf, t.Offset); n < len(buf) {
		return err
	}
	return nil
}
