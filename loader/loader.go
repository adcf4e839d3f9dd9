// Package loader reads safetensors checkpoints: [Open] reads the headers of every
// shard and nothing else, [Load] then brings the bytes, one matrix at a time, in
// memory that does not grow with the checkpoint.
//
// Every byte is taken as hostile. A header that is too large, names a tensor
// twice, leaves gaps or lets extents overlap is refused with the file and tensor
// named. The package does no arithmetic on weights, knows no model and follows no
// link out of the folder it was given ([DirIn] names a wider one).
package loader

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
)

const singleName = "model.safetensors"

// IndexName is the file beside the shards that says which holds what.
const IndexName = "model.safetensors.index.json"

// Snapshot is the inventory of a checkpoint as [Open] found it. It does not change
// and may be shared between goroutines.
type Snapshot struct {
	fsys    fs.FS
	shards  []Shard
	tensors []Tensor       // shard by shard, by offset within a shard
	byName  map[string]int // index into tensors
}

// Shard is one safetensors file of a snapshot.
type Shard struct {
	Name string
	Size int64 // bytes, header included

	header  int64             // bytes before the first tensor
	digest  [sha256.Size]byte // SHA-256 of those bytes
	stat    fs.FileInfo       // as opened, to notice a later change
	tensors []Tensor          // by offset
}

// Open reads the headers of model.safetensors, or of the shards that
// model.safetensors.index.json lists. The snapshot keeps fsys and opens its files
// again, from their first byte to their last, in [Load].
func Open(fsys fs.FS) (*Snapshot, error) {
	names, index, err := shardNames(fsys)
	if err != nil {
		return nil, err
	}
	if err := missing(fsys, names); err != nil {
		return nil, err
	}
	s := &Snapshot{fsys: fsys, byName: make(map[string]int)}
	for _, name := range names {
		sh, err := openShard(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := s.add(sh); err != nil {
			return nil, err
		}
	}
	if index != nil {
		if err := s.checkIndex(index); err != nil {
			return nil, fmt.Errorf("%s: %w", IndexName, err)
		}
	}
	return s, nil
}

// All yields every tensor, shard by shard, in the order of its bytes.
func (s *Snapshot) All() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for _, t := range s.tensors {
			if !yield(t) {
				return
			}
		}
	}
}

// Tensor finds a tensor by its name.
func (s *Snapshot) Tensor(name string) (Tensor, bool) {
	i, ok := s.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return s.tensors[i], true
}

// Shards lists the files in the order [Load] reads them. The caller may not change it.
func (s *Snapshot) Shards() []Shard { return s.shards }

// Bytes is the size of all shards: what [Load] will read.
func (s *Snapshot) Bytes() int64 {
	var n int64
	for _, sh := range s.shards {
		n += sh.Size
	}
	return n
}

// ReadFile reads a file beside the weights, config.json for one. A file of more
// than limit bytes is an error, and a missing one matches fs.ErrNotExist.
func (s *Snapshot) ReadFile(name string, limit int64) ([]byte, error) {
	return readFile(s.fsys, name, limit)
}

// Names lists a folder beside the weights, in order of name: nothing where there is no such folder.
func (s *Snapshot) Names(folder string) ([]string, error) {
	entries, err := fs.ReadDir(s.fsys, folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) { // a builtin model has no folders
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// add appends a shard. A name that an earlier shard holds too is refused: which of
// the two is meant cannot be known.
func (s *Snapshot) add(sh Shard) error {
	for _, t := range sh.tensors {
		if i, ok := s.byName[t.Name]; ok {
			return fmt.Errorf("tensor %q is in both %s and %s", t.Name, s.tensors[i].Shard, sh.Name)
		}
		s.byName[t.Name] = len(s.tensors)
		s.tensors = append(s.tensors, t)
	}
	if len(s.tensors) > maxTensors {
		return fmt.Errorf("%s: more than %d tensors in the checkpoint", sh.Name, maxTensors)
	}
	s.shards = append(s.shards, sh)
	return nil
}

// shardNames decides which files hold the weights. The index is nil without one.
func shardNames(fsys fs.FS) (names []string, index map[string]string, err error) {
	single, err := exists(fsys, singleName)
	if err != nil {
		return nil, nil, err
	}
	raw, err := readFile(fsys, IndexName, maxIndex)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !single:
		return nil, nil, fmt.Errorf("no %s and no %s: %s: %w", singleName, IndexName, instead(fsys), fs.ErrNotExist)
	case errors.Is(err, fs.ErrNotExist):
		return []string{singleName}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	names, index, err = parseIndex(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", IndexName, err)
	}
	if single && !slices.Contains(names, singleName) { // MLX writes an index that names it
		return nil, nil, fmt.Errorf("%s and %s are both there and disagree: remove one", singleName, IndexName)
	}
	return names, index, nil
}

// missing names the shards that are not there, all at once: a download that was cut off lacks several.
func missing(fsys fs.FS, names []string) error {
	var lost []string
	for _, name := range names {
		there, err := exists(fsys, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !there {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%d of the %d shards that %s lists are missing: %s; was the download cut off?: %w", len(lost), len(names), IndexName, some(lost), fs.ErrNotExist)
}

// maxNamed is how many names one error lists.
const maxNamed = 8

// some joins the first names of a list.
func some(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// openShard reads the header of one file.
func openShard(fsys fs.FS, name string) (Shard, error) {
	f, info, err := openFile(fsys, name)
	if err != nil {
		return Shard{}, err
	}
	defer f.Close()
	raw, err := readHeader(f, info.Size())
	if err != nil {
		return Shard{}, err
	}
	sh := Shard{Name: name, Size: info.Size(), header: int64(len(raw)), digest: sha256.Sum256(raw), stat: info}
	sh.tensors, err = parseHeader(raw[prefix:], sh.Size-sh.header)
	if err != nil {
		return Shard{}, err
	}
	for i := range sh.tensors {
		sh.tensors[i].Shard = name
		sh.tensors[i].Offset += sh.header
	}
	return sh, nil
}

// readHeader returns the length prefix and the header of a file of size bytes.
func readHeader(r io.Reader, size int64) ([]byte, error) {
	var length [prefix]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("no safetensors header in %d bytes: %w", size, err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes, at most %d are read: not a safetensors file?", n, maxHeader)
	}
	if int64(n) > size-prefix {
		return nil, fmt.Errorf("header of %d bytes in a file of %d: cut short?", n, size)
	}
	raw := make([]byte, prefix+n)
	copy(raw, length[:])
	if _, err := io.ReadFull(r, raw[prefix:]); err != nil {
		return nil, fmt.Errorf("header of %d bytes: %w", n, err)
	}
	return raw, nil
}
