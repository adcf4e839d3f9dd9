package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Span is a part of the file.
type Span struct{ From, To int64 }

// Found is what opening a journal came to.
type Found struct {
	Torn    int64  // bytes that were cut off: a record that was being written
	Damaged []Span // parts between records that are none
}

// Open reads a journal of the given size through, shows each record and makes the log ready
// for more. The payload is valid during the call only.
func Open(f File, size int64, each func(kind byte, at Place, payload []byte) error) (*Log, Found, error) {
	end, damaged, err := scan(f, size, each)
	if err != nil {
		return nil, Found{}, err
	}
	found := Found{Torn: size - end, Damaged: damaged}
	if found.Torn > 0 {
		if err := f.Truncate(end); err != nil {
			return nil, found, err
		}
	}
	return &Log{file: f, end: end, dirty: found.Torn > 0}, found, nil
}

// scan shows every record of the first size bytes and returns where the last one ends.
func scan(f io.ReaderAt, size int64, each func(kind byte, at Place, payload []byte) error) (int64, []Span, error) {
	r := &reader{f: f, size: size}
	head, err := r.view(0, len(magic))
	if err != nil {
		return 0, nil, err
	}
	if string(head) != magic {
		return 0, nil, fmt.Errorf("%w: it begins with %q, want %q", ErrFormat, head, magic)
	}
	var damaged []Span
	for at := int64(len(magic)); ; {
		record, err := r.record(at)
		if err != nil {
			return 0, nil, err
		}
		if record == nil {
			next, err := r.search(at + 1)
			if err != nil {
				return 0, nil, err
			}
			if next < 0 {
				return at, damaged, nil
			}
			damaged = append(damaged, Span{at, next})
			at = next
			continue
		}
		place := Place{at, len(record) - headBytes}
		if err := each(record[headBytes-1], place, record[headBytes:]); err != nil {
			return 0, nil, err
		}
		at += int64(len(record))
	}
}

// readAhead is how much of a journal is read at once, searchAhead how much of that a search
// looks at: a step of it must not read the file again.
const (
	readAhead   = 256 << 10
	searchAhead = 4 << 10
)

// reader shows parts of a file through a buffer.
type reader struct {
	f    io.ReaderAt
	size int64
	buf  []byte
	from int64 // where buf lies

	tried int64 // bytes that a search has computed checksums of
}

// view is n bytes at a place, fewer at the end of the file. It is valid until the next view.
func (r *reader) view(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), r.size-at))
	if n <= 0 {
		return nil, nil
	}
	if at >= r.from && at+int64(n) <= r.from+int64(len(r.buf)) {
		return r.buf[at-r.from:][:n], nil
	}
	want := int(min(int64(max(n, readAhead)), r.size-at))
	if cap(r.buf) < want || cap(r.buf) > 4*max(want, readAhead) { // one giant record must not hold its memory for ever
		r.buf = make([]byte, want)
	}
	r.buf, r.from = r.buf[:want], at
	if got, err := r.f.ReadAt(r.buf, at); got < want {
		r.buf = r.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("file has fewer than its %d bytes: %w", r.size, io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	return r.buf[:n], nil
}

// record is the whole record at a place, nil when there is none.
func (r *reader) record(at int64) ([]byte, error) {
	head, err := r.view(at, headBytes)
	if err != nil || len(head) < headBytes {
		return nil, err
	}
	n, ok := parseHead(head)
	if !ok || at+int64(headBytes+n) > r.size {
		return nil, nil
	}
	record, err := r.view(at, headBytes+n)
	if err != nil || !whole(record) {
		r.tried += int64(n)
		return nil, err
	}
	return record, nil
}

// maxTried bounds the work of a search, as a multiple of the file: a file can be made in
// which every few bytes begin what could be a large record.
const maxTried = 16

// search finds the next record at or behind a place, -1 when there is none.
func (r *reader) search(at int64) (int64, error) {
	for {
		part, err := r.view(at, searchAhead)
		if err != nil || len(part) < headBytes {
			return -1, err
		}
		i := bytes.Index(part, []byte(mark))
		if i < 0 {
			at += int64(len(part) - len(mark) + 1)
			continue
		}
		at += int64(i)
		record, err := r.record(at)
		if err != nil || record != nil {
			return at, err
		}
		if r.tried > maxTried*(r.size+readAhead) {
			return -1, fmt.Errorf("%w: damaged at byte %d beyond reading", ErrFormat, at)
		}
		at++
	}
}
