package stages

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// readBuffer is how much of the input is read at once.
const readBuffer = 64 << 10

// lines cuts a stream into lines of bounded length. A longer line is read past, never held.
type lines struct {
	r      *bufio.Reader
	limit  int64
	number int64 // of the last line, from 1
	offset int64 // of the next line
}

// line is one line without its end. Data is the caller's; it is nil when the line was too
// long, and bytes then is how long it was.
type line struct {
	number, offset int64
	data           []byte
	bytes          int64
}

func newLines(r io.Reader, limit int64) *lines {
	return &lines{r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// bom is the byte order mark that some editors put before UTF-8 text.
var bom = []byte("\ufeff")

// next returns io.EOF behind the last line, whether or not that ended with a line feed.
func (l *lines) next() (line, error) {
	out := line{number: l.number + 1, offset: l.offset}
	for {
		part, err := l.r.ReadSlice('\n')
		out.bytes += int64(len(part))
		if out.bytes <= l.limit+2 { // the line's end is not counted
			out.data = append(out.data, part...)
		} else {
			out.data = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || out.bytes == 0) {
			return line{}, err
		}
		break
	}
	l.number++
	l.offset += out.bytes
	return l.trim(out), nil
}

// trim takes off the line's end, and the byte order mark of the first line.
func (l *lines) trim(out line) line {
	if out.data == nil {
		return out
	}
	out.data = bytes.TrimSuffix(out.data, []byte{'\n'})
	out.data = bytes.TrimSuffix(out.data, []byte{'\r'})
	if out.number == 1 {
		out.data = bytes.TrimPrefix(out.data, bom)
	}
	if int64(len(out.data)) > l.limit {
		out.data = nil
	}
	return out
}

// blank reports whether the line holds white space only.
func (l line) blank() bool { return l.data != nil && len(bytes.Trim(l.data, " \t\r")) == 0 }
