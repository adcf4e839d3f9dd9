package metrics

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const epoch = 1_800_000_000_000 // where the samples of these tests begin, in Unix milliseconds

// tick is the i-th sample of a run that takes one every `every`.
func tick(i int, every time.Duration) Sample {
	ms := every.Milliseconds()
	return Sample{
		End: epoch + int64(i+1)*ms, Span: ms, Rows: 1, Tokens: 10, PromptTokens: 3, Rounds: 2, LaneTime: 4 * ms, Lanes: 8, RSS: int64(i),
		Guessed: []int64{3, 2}, Kept: []int64{2},
	}
}

func open(t *testing.T, path string, fresh bool) *Log {
	t.Helper()
	l, err := Open(path, fresh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func readFile(t *testing.T, path string) *Series {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func total(list []Sample) Sample {
	var all Sample
	for _, s := range list {
		all.Add(s)
	}
	return all
}

// TestAWeekStaysSmall writes the samples of a week. The file has its limit and loses no token.
func TestAWeekStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	l := open(t, path, false)
	var want Sample
	const week = 7 * 24 * time.Hour
	at := time.Duration(0)
	for at < week {
		ms := l.Every().Milliseconds()
		at += l.Every()
		s := Sample{End: epoch + at.Milliseconds(), Span: ms, Tokens: ms, Lanes: 2, LaneTime: 2 * ms, RSS: 7, Guessed: []int64{5, 4}, Kept: []int64{3}}
		if err := l.Append(s); err != nil {
			t.Fatal(err)
		}
		want.Add(s)
	}
	got := readFile(t, path)
	if n := len(got.Samples); n > maxSamples || n < maxSamples/2 || got.Bad != 0 {
		t.Errorf("%d samples, %d bad, want %d to %d", n, got.Bad, maxSamples/2, maxSamples)
	}
	if diff := cmp.Diff(want, total(got.Samples)); diff != "" {
		t.Errorf("sums (-written +read):\n%s", diff)
	}
	if want.Tokens != at.Milliseconds() || want.LaneTime != 2*at.Milliseconds() || want.Lanes != 2 || want.RSS != 7 {
		t.Errorf("all samples of %v add up to %+v", at, want)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	for i := range got.Samples[1:] {
		if got.Samples[i].End != got.Samples[i+1].Start() {
			t.Fatalf("sample %d ends at %d, the next begins at %d", i, got.Samples[i].End, got.Samples[i+1].Start())
		}
	}
}

func TestResumedFileGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	l := open(t, path, false)
	for i := range 5 {
		if err := l.Append(tick(i, firstEvery)); err != nil {
			t.Fatal(err)
		}
	}
	// The process dies in the middle of a line.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"end_ms":18000`)
	f.Close()
	if got := readFile(t, path); len(got.Samples) != 5 || got.Bad != 0 {
		t.Errorf("%d samples, %d bad in front of a torn line, want 5 and 0", len(got.Samples), got.Bad)
	}
	if err := os.WriteFile(path+partial, []byte("left behind"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, false)
	if err := again.Append(tick(100, firstEvery)); err != nil {
		t.Fatal(err)
	}
	got := readFile(t, path)
	if len(got.Samples) != 6 || got.Bad != 0 || got.Samples[5].RSS != 100 {
		t.Errorf("%d samples, %d bad, want 6 and 0", len(got.Samples), got.Bad)
	}
	if _, err := os.Stat(path + partial); err == nil {
		t.Error("the file of an earlier death is left")
	}
	open(t, path, true)
	if got := readFile(t, path); len(got.Samples) != 0 {
		t.Errorf("%d samples in a fresh file", len(got.Samples))
	}
}

// TestManyShortRunsStaySmall is the loop of a job that dies again and again: no two samples follow each other.
func TestManyShortRunsStaySmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	l := open(t, path, false)
	l.limit = 100
	for i := range 1000 {
		s := tick(0, firstEvery)
		s.End += int64(i) * time.Hour.Milliseconds()
		if err := l.Append(s); err != nil {
			t.Fatal(err)
		}
		if n := len(readFile(t, path).Samples); n > l.limit {
			t.Fatalf("%d samples after %d runs", n, i+1)
		}
	}
	if last := l.have[len(l.have)-1]; last.End != epoch+firstEvery.Milliseconds()+999*time.Hour.Milliseconds() {
		t.Errorf("the last sample is of %d", last.End)
	}
}

// TestMergedShardsKeepTheirSums: three shards of one job, each with all the samples that a file may have.
func TestMergedShardsKeepTheirSums(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	var parts []*Series
	var want Sample
	for shard := range 3 {
		s := &Series{Every: firstEvery}
		for i := range maxSamples {
			one := tick(i, firstEvery)
			one.End += int64(shard)
			s.Samples = append(s.Samples, one)
			want.Add(one)
		}
		parts = append(parts, s)
	}
	if err := Merge(path, parts); err != nil {
		t.Fatal(err)
	}
	got := readFile(t, path)
	if n := len(got.Samples); n > maxSamples || n < maxSamples/4 || got.Every != 4*firstEvery {
		t.Errorf("%d samples, one every %v", n, got.Every)
	}
	if diff := cmp.Diff(want, total(got.Samples)); diff != "" || want.Tokens != 3*maxSamples*10 || want.Guessed[1] != 3*maxSamples*2 {
		t.Errorf("sums %+v (-written +read):\n%s", want, diff)
	}
	for i := range got.Samples[1:] {
		if got.Samples[i].End > got.Samples[i+1].End {
			t.Fatalf("sample %d is behind the next", i)
		}
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	headLine := string(line(head{format, 100}))
	for name, c := range map[string]struct {
		text, want string
		samples    int
		bad        int
	}{
		"empty":            {"", "", 0, 0},
		"head torn":        {headLine[:10], "", 0, 0},
		"other format":     {"{\"format\":\"x\"}\n", "is no file of measurements", 0, 0},
		"no JSON":          {"hello\n", "is no file of measurements", 0, 0},
		"negative":         {headLine + "{\"end_ms\":9,\"ms\":1,\"tokens\":-1}\n", "", 0, 1},
		"overflow":         {headLine + "{\"end_ms\":9,\"ms\":1,\"tokens\":9223372036854775807}\n", "", 0, 1},
		"before its start": {headLine + "{\"end_ms\":9,\"ms\":10}\n", "", 0, 1},
		"kept past depth":  {headLine + "{\"end_ms\":9,\"ms\":1,\"kept\":[1]}\n", "", 0, 1},
		"one is good":      {headLine + "\x00\x00\n{\"end_ms\":9,\"ms\":1,\"more\":true}\n", "", 1, 1},
		"deep":             {headLine + "{\"end_ms\":9,\"ms\":1,\"guessed\":[" + strings.Repeat("1,", 64) + "1]}\n", "", 0, 1},
		"long line":        {headLine + strings.Repeat(" ", maxLine) + "\n", "more than 8192 bytes", 0, 0},
		"many lines":       {headLine + strings.Repeat("\n", maxLines+1), "more than 131072 lines", 0, 0},
	} {
		s, err := Read(strings.NewReader(c.text))
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case err == nil && (len(s.Samples) != c.samples || s.Bad != c.bad):
			t.Errorf("%s: %d samples, %d bad, want %d and %d", name, len(s.Samples), s.Bad, c.samples, c.bad)
		}
	}
}

// FuzzRead: what is read can be added up and written again, and reads as the same.
func FuzzRead(f *testing.F) {
	text := string(line(head{format, 100})) + string(line(tick(0, firstEvery))) + string(line(tick(1, firstEvery)))
	f.Add([]byte(text))
	f.Add([]byte(text[:len(text)-9]))
	f.Add([]byte("{\"format\":\"tfbatch/metrics/1\",\"every_ms\":-9223372036854775808}\n{\"end_ms\":1e3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if s.Every < firstEvery || s.Every > maxEvery {
			t.Fatalf("a sample every %v", s.Every)
		}
		var b bytes.Buffer
		b.Write(line(head{format, s.Every.Milliseconds()}))
		for _, one := range s.Samples {
			b.Write(line(one))
		}
		again, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		was, is := total(s.Samples), total(again.Samples)
		if fmt.Sprint(was) != fmt.Sprint(is) || again.Bad != 0 || len(again.Samples) != len(s.Samples) || again.Every != s.Every {
			t.Fatalf("read %d samples of %v: %+v, written and read %d of %v: %+v", len(s.Samples), s.Every, was, len(again.Samples), again.Every, is)
		}
		if was.Tokens < 0 || was.LaneTime < 0 {
			t.Fatalf("sum overflows: %+v", was)
		}
	})
}
