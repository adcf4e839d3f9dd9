// Package journal is an append-only file of records, each with its length and a checksum, so
// that whatever ends the writer, what was appended before is found again. It knows nothing
// of what records mean.
//
// Start with [Create] and [Open]. A record that was cut short at the end of the file is cut
// off when it is opened; nothing else ever is. Damage in the middle is passed over and
// told, and the file is left as it is.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

// File is what a journal needs of its file, which was opened for reading and appending. The
// caller closes it.
type File interface {
	io.ReaderAt
	io.Writer // appends
	Truncate(size int64) error
	Sync() error
}

// magic begins a journal; it names the layout of records.
const magic = "tfbatch/journal/1\n"

// A record is mark, length of the payload, checksum and kind, then the payload. The mark
// begins with a byte that UTF-8 does not have, so that no text in a payload looks like one.
const (
	mark       = "\xf5tfb"
	headBytes  = len(mark) + 4 + 4 + 1
	maxPayload = 1 << 30 // far above the replies of any row
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrFormat is what makes a file no journal of this version.
var ErrFormat = errors.New("not a journal of this version")

// Place is where a record lies.
type Place struct {
	Offset int64
	Bytes  int // of the payload
}

// Log is an open journal. Goroutines may share it.
type Log struct {
	mu     sync.Mutex
	file   File
	end    int64
	buf    []byte // of the record that is written
	dirty  bool   // there is something to sync
	broken error  // a write or sync failed: what follows could not be trusted
}

// Create begins a journal in an empty file.
func Create(f File) (*Log, error) {
	if _, err := io.WriteString(f, magic); err != nil {
		return nil, err
	}
	return &Log{file: f, end: int64(len(magic)), dirty: true}, nil
}

// Append adds a record with one write. It is found again once the writing process has died;
// once the machine has, only after Sync. After an error the log takes no more: the record
// may be there in part, and is cut off when the journal is next opened.
func (l *Log) Append(kind byte, payload []byte) (Place, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return Place{}, l.broken
	}
	if len(payload) > maxPayload {
		return Place{}, fmt.Errorf("record has %d bytes, at most %d", len(payload), maxPayload)
	}
	l.buf = appendRecord(l.buf[:0], kind, payload)
	if _, err := l.file.Write(l.buf); err != nil {
		l.broken = err
		return Place{}, err
	}
	at := Place{l.end, len(payload)}
	l.end += int64(len(l.buf))
	l.dirty = true
	return at, nil
}

func appendRecord(b []byte, kind byte, payload []byte) []byte {
	b = append(b, mark...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, 0, 0, 0, 0, kind)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[8:], checksum(b[:headBytes], payload))
	return b
}

// checksum covers all of a record but itself.
func checksum(head, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, head[:8])
	sum = crc32.Update(sum, castagnoli, head[12:headBytes])
	return crc32.Update(sum, castagnoli, payload)
}

// Sync brings what was appended to the disk.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil || !l.dirty {
		return l.broken
	}
	if l.broken = l.file.Sync(); l.broken == nil {
		l.dirty = false
	}
	return l.broken
}

// Read returns the payload at p, which lies in buf. That grows where it must. The checksum is looked at
// again: between the scan and now a disk may have lost it.
func (l *Log) Read(p Place, buf *[]byte) ([]byte, error) {
	size := headBytes + p.Bytes
	*buf = slices.Grow((*buf)[:0], size)
	record := (*buf)[:size]
	if _, err := l.file.ReadAt(record, p.Offset); err != nil {
		return nil, fmt.Errorf("record at byte %d: %w", p.Offset, err)
	}
	if n, ok := parseHead(record); !ok || n != p.Bytes || !whole(record) {
		return nil, fmt.Errorf("record at byte %d of %d bytes: checksum differs", p.Offset, p.Bytes)
	}
	return record[headBytes:], nil
}

// parseHead returns the length of the payload.
func parseHead(head []byte) (int, bool) {
	if string(head[:len(mark)]) != mark {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(head[len(mark):])
	return int(n), n <= maxPayload
}

// whole reports whether the checksum of a record holds.
func whole(record []byte) bool {
	return binary.LittleEndian.Uint32(record[8:]) == checksum(record[:headBytes], record[headBytes:])
}
