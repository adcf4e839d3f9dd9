package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// memory is a file that can fail.
type memory struct {
	data   []byte
	writes int
	room   int // bytes that fit; 0: any number
	err    error
}

func (m *memory) Write(p []byte) (int, error) {
	m.writes++
	if m.room > 0 && len(m.data)+len(p) > m.room {
		n := m.room - len(m.data)
		m.data = append(m.data, p[:n]...)
		return n, errors.New("no space left")
	}
	m.data = append(m.data, p...)
	return len(p), nil
}

func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, at)
}

func (m *memory) Truncate(size int64) error {
	m.data = m.data[:size]
	return nil
}

func (m *memory) Sync() error { return m.err }

// entry is a record as a test sees it.
type entry struct {
	kind    byte
	payload string
	at      Place
}

func (e entry) String() string { return fmt.Sprintf("%d %d+%d", e.kind, e.at.Offset, e.at.Bytes) }

// write makes a journal of entries and fills in their places.
func write(t interface{ Fatal(...any) }, list []entry) *memory {
	m := &memory{}
	log, err := Create(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].at, err = log.Append(list[i].kind, []byte(list[i].payload)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func read(m *memory) ([]entry, *Log, Found, error) {
	var list []entry
	log, found, err := Open(m, int64(len(m.data)), func(kind byte, at Place, payload []byte) error {
		list = append(list, entry{kind, string(payload), at})
		return nil
	})
	return list, log, found, err
}

// entries draws records, among them ones whose payload holds what looks like a record.
func entries(t *rapid.T) []entry {
	payload := rapid.OneOf(rapid.String(), rapid.Just(mark), rapid.Just(strings.Repeat("long ", 1<<17)),
		rapid.Map(rapid.String(), func(s string) string { return string(appendRecord(nil, 1, []byte(s)))[1:] }))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
		return entry{kind: rapid.Byte().Draw(t, "kind"), payload: payload.Draw(t, "payload")}
	}), 0, 12).Draw(t, "entries")
}

// TestTornTailLosesNothingElse cuts a journal at any byte and puts junk behind the cut: the
// records that were whole are found, and what is appended then too.
func TestTornTailLosesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := entries(t)
		m := write(t, list)
		cut := rapid.IntRange(len(magic), len(m.data)).Draw(t, "cut")
		m.data = append(m.data[:cut], rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "junk")...)
		if rapid.Bool().Draw(t, "zeros") {
			m.data = append(m.data, make([]byte, 5000)...)
		}
		whole := list
		for len(whole) > 0 && end(whole[len(whole)-1]) > int64(cut) {
			whole = whole[:len(whole)-1]
		}
		got, log, found, err := read(m)
		if err != nil || !slices.Equal(got, whole) || len(found.Damaged) > 0 {
			t.Fatalf("got %v, %+v, %v; want %v", got, found, err, whole)
		}
		at, err := log.Append(9, []byte("more"))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := log.Read(at, new([]byte)); err != nil || string(text) != "more" {
			t.Fatalf("read back %q, %v", text, err)
		}
		got, _, found, err = read(m)
		if want := append(slices.Clone(whole), entry{9, "more", at}); err != nil || !slices.Equal(got, want) || found.Torn != 0 {
			t.Fatalf("after the append: got %v, %+v, %v; want %v", got, found, err, want)
		}
	})
}

func end(e entry) int64 { return e.at.Offset + int64(headBytes+e.at.Bytes) }

// TestDamageCostsOnlyItsRecord changes a byte of one record: the others are found, and not a
// byte of the file is cut off unless it was the last.
func TestDamageCostsOnlyItsRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := append(entries(t), entry{kind: 1, payload: "one"}, entry{kind: 2, payload: "two"})
		m := write(t, list)
		hit := rapid.IntRange(0, len(list)-1).Draw(t, "record")
		e := list[hit]
		place := e.at.Offset + int64(rapid.IntRange(0, headBytes+e.at.Bytes-1).Draw(t, "byte"))
		m.data[place] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		size := len(m.data)

		want := slices.Delete(slices.Clone(list), hit, hit+1)
		got, _, found, err := read(m)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
		if last := hit == len(list)-1; last != (found.Torn > 0) || last == (len(found.Damaged) == 1) || !last && len(m.data) != size {
			t.Fatalf("record %d of %d: found %+v, file %d of %d bytes", hit, len(list), found, len(m.data), size)
		}
	})
}

// TestFailedWriteEndsTheLog holds that nothing comes behind a record that is there in part.
func TestFailedWriteEndsTheLog(t *testing.T) {
	m := &memory{room: 60}
	log, err := Create(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(1, []byte("fits")); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(1, []byte(strings.Repeat("x", 99))); err == nil {
		t.Fatal("the disk was not full")
	}
	m.room = 0
	if _, err := log.Append(1, []byte("late")); err == nil || log.Sync() == nil {
		t.Error("the log took more behind a torn record")
	}
	if got, _, found, err := read(m); err != nil || len(got) != 1 || found.Torn == 0 {
		t.Errorf("got %v, %+v, %v", got, found, err)
	}
}

func TestFailedSyncEndsTheLog(t *testing.T) {
	m := write(t, []entry{{kind: 1, payload: "a"}})
	_, log, _, err := read(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.err = errors.New("i/o error"); log.Sync() != nil {
		t.Error("a log without appends was synced")
	}
	if _, err := log.Append(1, nil); err != nil {
		t.Fatal(err)
	}
	if log.Sync() == nil {
		t.Fatal("sync passed")
	}
	m.err = nil
	if log.Sync() == nil {
		t.Error("a second sync hides that the first one failed")
	}
}

// TestOtherFiles holds that a file that is no journal is an error, and stays as it is.
func TestOtherFiles(t *testing.T) {
	for _, text := range []string{"", "tfbatch/journ", "tfbatch/journal/2\n", strings.Repeat("{}\n", 100)} {
		m := &memory{data: []byte(text)}
		if _, _, _, err := read(m); !errors.Is(err, ErrFormat) || string(m.data) != text {
			t.Errorf("%q: got %v, file %q", text, err, m.data)
		}
	}
}

// TestShortFile holds that a file that shrinks under the reader is an error, no torn tail.
func TestShortFile(t *testing.T) {
	m := write(t, []entry{{kind: 1, payload: strings.Repeat("x", 1000)}})
	_, _, err := Open(m, int64(len(m.data))+10, func(byte, Place, []byte) error { return nil })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// TestSearchIsBounded gives a file in which every 13 bytes seem to begin a large record.
func TestSearchIsBounded(t *testing.T) {
	fake := appendRecord(nil, 1, make([]byte, 8<<20))[:headBytes]
	fake[9] ^= 1
	m := &memory{data: append([]byte(magic), bytes.Repeat(fake, 1<<20)...)}
	size := len(m.data)
	if _, _, _, err := read(m); !errors.Is(err, ErrFormat) || len(m.data) != size {
		t.Errorf("got %v, %d of %d bytes left", err, len(m.data), size)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(magic))
	whole := write(f, []entry{{kind: 1, payload: "a"}, {kind: 2, payload: strings.Repeat("b", 300)}}).data
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(slices.Clone(whole[:30]), whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &memory{data: slices.Clone(data)}
		got, log, found, err := read(m)
		if err != nil {
			if !bytes.Equal(m.data, data) {
				t.Fatalf("%v, and the file was changed", err)
			}
			return
		}
		if !bytes.HasPrefix(data, m.data) || int64(len(data)-len(m.data)) != found.Torn {
			t.Fatalf("%d of %d bytes left, %+v", len(m.data), len(data), found)
		}
		for _, e := range got {
			if text, err := log.Read(e.at, new([]byte)); err != nil || string(text) != e.payload {
				t.Fatalf("%v reads as %q, %v", e, text, err)
			}
		}
		again, _, second, err := read(m)
		if err != nil || !slices.Equal(again, got) || second.Torn != 0 {
			t.Fatalf("a second time: %v, %+v, %v; want %v", again, second, err, got)
		}
	})
}
