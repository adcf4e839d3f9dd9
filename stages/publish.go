package stages

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"

	"tfbatch/internal/row"
)

// published is what the final files came to.
type published struct {
	counts Counts
	root   row.Root
	files  []FileDigest
}

// build writes rows and errors in the order of the input, from journals alone: the bytes
// depend on nothing else. read finds a row's facts and its line.
func (f *Folder) build(rows int64, read func(index int64) (facts, []byte, error)) (*published, error) {
	out := &published{counts: newCounts()}
	all, err := newPart(f, rowsName)
	if err != nil {
		return nil, err
	}
	defer all.close()
	failed, err := newPart(f, errorsName)
	if err != nil {
		return nil, err
	}
	defer failed.close()
	for index := range rows {
		facts, line, err := read(index)
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", f.path(journalName), index, err)
		}
		all.append(line)
		if facts.code != "" {
			failed.append(line)
		}
		out.counts.facts(&facts, 1)
		for _, leaf := range facts.leaves {
			out.root.Add(leaf)
		}
	}
	for _, p := range []*partFile{all, failed} {
		if err := p.finish(); err != nil {
			return nil, err
		}
		out.files = append(out.files, p.digest())
	}
	return out, nil
}

// publish gives the files their final names, the manifest last. What the journal is not
// needed for any more goes with it.
func (f *Folder) publish(manifest []byte, finished bool) error {
	m, err := newPart(f, manifestName)
	if err != nil {
		return err
	}
	defer m.close()
	m.append(manifest)
	if err := m.finish(); err != nil {
		return err
	}
	for _, names := range [][]string{{rowsName, errorsName}, {manifestName}} {
		for _, name := range names {
			if err := f.disk.Rename(f.path(name)+partial, f.path(name)); err != nil {
				return err
			}
		}
		if err := syncDir(f.disk, f.dir); err != nil {
			return err
		}
	}
	if f.file != nil { // a merge has no journal of its own
		if err := f.file.Close(); err != nil {
			return err
		}
		f.file = nil
	}
	return f.tidy(finished)
}

// writeAhead is how much of a file is written at once.
const writeAhead = 256 << 10

// partFile is a file that has its final name only once it is complete.
type partFile struct {
	name string
	f    File
	w    *bufio.Writer // keeps the first error until finish
	hash hash.Hash
	size int64
}

func newPart(f *Folder, name string) (*partFile, error) {
	file, err := f.disk.Open(f.path(name)+partial, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return &partFile{name: name, f: file, w: bufio.NewWriterSize(file, writeAhead), hash: sha256.New()}, nil
}

func (p *partFile) append(line []byte) {
	p.hash.Write(line)
	p.size += int64(len(line))
	p.w.Write(line)
}

// finish brings all of it to the disk.
func (p *partFile) finish() error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	return p.f.Sync()
}

func (p *partFile) digest() FileDigest {
	return FileDigest{p.name, p.size, row.Digest(p.hash.Sum(nil))}
}

func (p *partFile) close() { _ = p.f.Close() } // what matters of its errors was seen by finish
