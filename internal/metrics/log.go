package metrics

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"tfbatch/internal/regular"
)

// format is in the first line of a file; it names the layout of the others.
const format = "tfbatch/metrics/1"

// head is the first line of a file.
type head struct {
	Format string `json:"format"`
	Every  int64  `json:"every_ms"` // between two samples
}

// firstEvery is the time between samples while a run is young: seconds of it show in a plot. Each time the file has
// maxSamples, two become one, so that a run of a week ends with one in seven minutes.
const (
	firstEvery = 100 * time.Millisecond
	maxSamples = 2048
)

// maxEvery bounds the time between samples that a file may ask for: a year of them fits.
const maxEvery = 24 * time.Hour

// Log writes samples to a file, and never more than maxSamples of them. One goroutine uses it.
type Log struct {
	path  string
	file  *os.File
	every time.Duration
	have  []Sample
	limit int
}

// Open goes on with a file, or begins one where there is none or fresh asks for it. A line that was torn is cut off.
// A file that is no file of measurements is left as it is.
func Open(path string, fresh bool) (*Log, error) {
	l := &Log{path: path, every: firstEvery, limit: maxSamples}
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, l.rewrite()
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	series, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !fresh {
		l.every, l.have = series.Every, series.Samples
		l.fit()
	}
	return l, l.rewrite()
}

// Every is the time that the next sample should span.
func (l *Log) Every() time.Duration { return l.every }

// Append adds a sample. It is found again once the process has died.
func (l *Log) Append(s Sample) error {
	l.have = append(l.have, s)
	if len(l.have) > l.limit {
		l.fit()
		return l.rewrite()
	}
	if l.file == nil {
		return fs.ErrClosed // a rewrite has failed
	}
	_, err := l.file.Write(line(s))
	return err
}

// fit makes one sample of two until there is room for as many again. Where runs were broken off so often that few
// samples follow each other, the oldest go.
func (l *Log) fit() {
	if len(l.have) <= l.limit {
		return
	}
	l.have = halve(l.have, l.every)
	l.every = min(2*l.every, maxEvery)
	if over := len(l.have) - 3*l.limit/4; over > 0 {
		l.have = append([]Sample(nil), l.have[over:]...)
	}
}

// halve joins pairs of samples that follow each other.
func halve(list []Sample, every time.Duration) (out []Sample) {
	for i := 0; i < len(list); i++ {
		one := list[i]
		if i+1 < len(list) && one.follows(&list[i+1], every) {
			one.Add(list[i+1])
			i++
		}
		out = append(out, one)
	}
	return out
}

const partial = ".partial"

// rewrite puts all samples into a new file, which takes the place of the old one when it is whole.
func (l *Log) rewrite() error {
	if err := l.Close(); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path+partial, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	l.file = file
	w := bufio.NewWriter(file)
	w.Write(line(head{format, l.every.Milliseconds()}))
	for _, s := range l.have {
		w.Write(line(s))
	}
	err = w.Flush()
	if err == nil {
		err = os.Rename(l.path+partial, l.path)
	}
	if err != nil {
		return errors.Join(err, l.Close(), os.Remove(l.path+partial))
	}
	return nil
}

// line is a value as one line of JSON. No value of ours can fail.
func line(v any) []byte {
	b, _ := json.Marshal(v)
	return append(b, '\n')
}

// Close gives the file back. It is not brought to the disk: nothing depends on it.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Merge writes the samples of runs that were beside each other, by time, to a new file that is no larger than any.
func Merge(path string, parts []*Series) error {
	l := &Log{path: path, every: firstEvery, limit: maxSamples}
	for _, p := range parts {
		list, every := p.Samples, p.Every
		for most := max(1, l.limit/len(parts)); len(list) > most; every *= 2 {
			shorter := halve(list, every)
			if len(shorter) == len(list) {
				shorter = list[len(list)-most:]
			}
			list = shorter
		}
		l.have, l.every = append(l.have, list...), min(max(l.every, every), maxEvery)
	}
	slices.SortStableFunc(l.have, func(a, b Sample) int { return cmp.Compare(a.End, b.End) })
	l.have = l.have[max(0, len(l.have)-l.limit):]
	return errors.Join(l.rewrite(), l.Close())
}

// Series is what a file holds.
type Series struct {
	Every   time.Duration
	Samples []Sample
	Bad     int // lines that are no sample, the torn last one left out
}

// The limits of a file that is read: a little above what a Log writes, so that one of many parts can be read too.
const (
	maxLine  = 8 << 10
	maxLines = 64 * maxSamples
)

// Read reads samples. What a run could not have written is counted and left out; a last line without its end was
// being written when the run died.
func Read(r io.Reader) (*Series, error) {
	in := bufio.NewReaderSize(r, maxLine)
	first, err := in.ReadSlice('\n')
	if errors.Is(err, io.EOF) { // of a file that had no time to get its head
		return &Series{Every: firstEvery}, nil
	}
	var h head
	if err != nil || json.Unmarshal(first, &h) != nil || h.Format != format {
		return nil, fmt.Errorf("is no file of measurements: want %q in its first line", format)
	}
	out := &Series{Every: min(max(time.Duration(min(h.Every, maxEvery.Milliseconds()))*time.Millisecond, firstEvery), maxEvery)}
	for range maxLines {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("has a line of more than %d bytes", maxLine)
		case err != nil:
			return nil, err
		}
		out.take(text)
	}
	return nil, fmt.Errorf("has more than %d lines", maxLines)
}

func (s *Series) take(text []byte) {
	var one Sample
	if json.Unmarshal(text, &one) != nil || one.check() != nil {
		s.Bad++
		return
	}
	s.Samples = append(s.Samples, one)
}
