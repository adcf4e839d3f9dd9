package stages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func allLines(t *testing.T, r io.Reader, limit int64) []string {
	t.Helper()
	in := newLines(r, limit)
	var out []string
	for {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d@%d %q", l.number, l.offset, l.data)
		if l.data == nil {
			text = fmt.Sprintf("%d@%d too long: %d", l.number, l.offset, l.bytes)
		}
		if l.blank() {
			text += " blank"
		}
		out = append(out, text)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, c := range []struct {
		name, input string
		want        []string
	}{
		{"empty", "", nil},
		{"last line without an end", "a\nb", []string{`1@0 "a"`, `2@2 "b"`}},
		{"line feeds", "a\n\nb\n", []string{`1@0 "a"`, `2@2 "" blank`, `3@3 "b"`}},
		{"carriage returns", "a\r\n\r\nb\r\nc\r", []string{`1@0 "a"`, `2@3 "" blank`, `3@5 "b"`, `4@8 "c"`}},
		{"a carriage return inside stays", "a\rb\n", []string{`1@0 "a\rb"`}},
		{"byte order mark on the first line only", "\ufeffa\n\ufeffb\n", []string{`1@0 "a"`, `2@5 "\ufeffb"`}},
		{"only a byte order mark", "\ufeff", []string{`1@0 "" blank`}},
		{"white space", " \t \n", []string{`1@0 " \t " blank`}},
		{"at the limit", "0123456789\r\n0123456789", []string{`1@0 "0123456789"`, `2@12 "0123456789"`}},
		{"over the limit", "0123456789a\nb\n", []string{"1@0 too long: 12", `2@12 "b"`}},
		{"far over the limit", "a\n" + long + "\nb\n" + long, []string{`1@0 "a"`, "2@2 too long: 200001", `3@200003 "b"`, "4@200005 too long: 200000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.input), iotest.OneByteReader(strings.NewReader(c.input))} {
				if diff := cmp.Diff(c.want, allLines(t, r, 10)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestLongLinesAreNotHeld reads a line of 64 MiB with a limit of 1 KiB.
func TestLongLinesAreNotHeld(t *testing.T) {
	in := newLines(io.MultiReader(io.LimitReader(zeros{}, 64<<20), strings.NewReader("\n{}\n")), 1<<10)
	allocated := testing.AllocsPerRun(1, func() {
		for {
			l, err := in.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || cap(l.data) > 4<<10 {
				t.Fatalf("held %d bytes, error %v", cap(l.data), err)
			}
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations for two lines", allocated)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestCompressionIsFoundByItsFirstBytes(t *testing.T) {
	const text = "{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"
	var gz, gzTwice, zs bytes.Buffer
	for _, b := range []*bytes.Buffer{&gz, &gzTwice, &gzTwice} {
		w := gzip.NewWriter(b)
		io.WriteString(w, text)
		w.Close()
	}
	w, _ := zstd.NewWriter(&zs)
	io.WriteString(w, text)
	w.Close()
	for _, c := range []struct {
		name   string
		stored []byte
		want   string
	}{
		{"plain", []byte(text), text},
		{"empty", nil, ""},
		{"shorter than a magic number", []byte("{}"), "{}"},
		{"gzip", gz.Bytes(), text},
		{"gzip of two members", gzTwice.Bytes(), text + text},
		{"zstd", zs.Bytes(), text},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := openSource("-", iotest.HalfReader(bytes.NewReader(c.stored)))
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			got, err := io.ReadAll(s.text)
			if err != nil || string(got) != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, stored := range [][]byte{gz.Bytes()[:gz.Len()-5], zs.Bytes()[:zs.Len()-5]} {
		s, err := openSource("-", bytes.NewReader(stored))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(s.text); err == nil {
			t.Error("a torn file was read without an error")
		}
		s.close()
	}
}
