package tokenizer

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var oracle = flag.String("oracle", "", "directory that testdata/oracle.py run has filled")

// answer is one line of a case file: what the library says. See testdata/oracle.py.
type answer struct {
	Text    *string `json:"text"`
	IDs     []int32 `json:"ids"`
	Framed  []int32 `json:"framed"`
	Decoded string  `json:"decoded"`
	Visible string  `json:"visible"`
}

// TestGolden holds the small tokenizers, one for each way of putting the parts together.
func TestGolden(t *testing.T) {
	compareAll(t, filepath.Join("testdata", "golden"))
}

// TestOracle holds published tokenizers and many more lines, where the library has been asked.
func TestOracle(t *testing.T) {
	if *oracle == "" {
		t.Skip("needs -oracle DIR")
	}
	compareAll(t, *oracle)
}

// TestPieces holds what single pre-tokenizers cut.
func TestPieces(t *testing.T) {
	for line := range lines(t, filepath.Join("testdata", "pieces.jsonl")) {
		var q struct {
			PreTokenizer json.RawMessage `json:"pre_tokenizer"`
			Text         string          `json:"text"`
			Pieces       []string        `json:"pieces"`
		}
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		steps, err := readSplitter(part{"pre_tokenizer", q.PreTokenizer}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &scratch{}
		var pieces []string
		s.words = func(p piece) { pieces = append(pieces, p.text) }
		s.chain(steps)
		s.words(piece{q.Text, true})
		if !slices.Equal(pieces, q.Pieces) {
			t.Errorf("%s on %+q:\n got %+q\nwant %+q", q.PreTokenizer, q.Text, pieces, q.Pieces)
		}
	}
}

func compareAll(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no cases (%v)", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) { compareFile(t, file) })
	}
}

func compareFile(t *testing.T, file string) {
	tok := load(t, strings.TrimSuffix(strings.TrimSuffix(file, ".jsonl"), ".sweep")+".json")
	total, wrong := 0, 0
	for line := range lines(t, file) {
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		total++
		if !a.check(t, tok, wrong < 5) {
			wrong++
		}
	}
	t.Logf("%d of %d equal", total-wrong, total)
	if wrong > 0 {
		t.Fail()
	}
}

// check compares all that tok says with the answer.
func (a answer) check(t *testing.T, tok *Tokenizer, report bool) bool {
	ok := true
	expect := func(what string, got, want any, same bool) {
		if ok = ok && same; !same && report {
			t.Errorf("%s of %+q %v:\n got %+q %v\nwant %+q %v", what, deref(a.Text), a.IDs, got, got, want, want)
		}
	}
	if a.Text != nil {
		ids, framed := tok.Encode(*a.Text), tok.EncodeFramed(*a.Text)
		expect("ids", ids, a.IDs, slices.Equal(ids, a.IDs))
		expect("framed ids", framed, a.Framed, slices.Equal(framed, a.Framed))
	}
	decoded, visible := tok.Decode(a.IDs), tok.DecodeVisible(a.IDs)
	expect("text", decoded, a.Decoded, decoded == a.Decoded)
	expect("visible text", visible, a.Visible, visible == a.Visible)
	s := tok.Stream()
	for range 2 { // a stream starts over after Flush
		streamed := stream(t, s, a.IDs)
		expect("streamed text", streamed, a.Decoded, streamed == a.Decoded)
	}
	return ok
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// stream joins what a stream returns for ids, and checks that no character is split.
func stream(t *testing.T, s *Stream, ids []int32) string {
	t.Helper()
	var all strings.Builder
	for _, id := range ids {
		text := s.Push(id)
		if !utf8.ValidString(text) {
			t.Errorf("push of %d in %v returned %+q", id, ids, text)
		}
		all.WriteString(text)
	}
	return all.String() + s.Flush()
}

func load(t testing.TB, file string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func lines(t *testing.T, file string) func(yield func([]byte) bool) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func(yield func([]byte) bool) {
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<24)
		for s.Scan() && yield(s.Bytes()) {
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
}
