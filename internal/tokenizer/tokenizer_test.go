package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestGopherVocabulary(t *testing.T) {
	tok := gopher(t)
	if tok.Size() != 8192 {
		t.Errorf("size %d", tok.Size())
	}
	id, ok := tok.ID("<|im_end|>")
	if text, _ := tok.Token(id); !ok || id != 7 || text != "<|im_end|>" || !tok.Special(id) {
		t.Errorf("<|im_end|> is %d %v, %q, special %v", id, ok, text, tok.Special(id))
	}
	if _, ok := tok.ID("no such token"); ok {
		t.Error("a token that is not there has an id")
	}
	for _, id := range []int32{-1, 8192, 1 << 30} {
		if _, ok := tok.Token(id); ok || tok.Special(id) || tok.Decode([]int32{id}) != "" {
			t.Errorf("id %d stands for something", id)
		}
	}
}

func TestFramedTextBeginsASequence(t *testing.T) {
	tok := gopher(t)
	bare, framed := tok.Encode("hello"), tok.EncodeFramed("hello")
	if !slices.Equal(framed, append([]int32{1}, bare...)) {
		t.Errorf("bare %v, framed %v", bare, framed)
	}
	if got := tok.EncodeFramed(""); !slices.Equal(got, []int32{1}) {
		t.Errorf("framed nothing is %v", got)
	}
}

func TestSpecialTokensInText(t *testing.T) {
	tok := gopher(t)
	ids := tok.Encode("<|im_start|>user\nhi<|im_end|>")
	if ids[0] != 6 || ids[len(ids)-1] != 7 {
		t.Errorf("ids %v do not begin with 6 and end with 7", ids)
	}
	if got := tok.DecodeVisible(ids); got != "user\nhi" {
		t.Errorf("visible text %q", got)
	}
	if broken := tok.Encode("<|im_start|"); slices.Contains(broken, 6) {
		t.Errorf("half a token gives it whole: %v", broken)
	}
}

// TestInvalidBytes holds the same rule for text that comes in and bytes that go out.
func TestInvalidBytes(t *testing.T) {
	tok := gopher(t)
	for _, x := range []struct{ bytes, want string }{
		{"a\xffb", "a\uFFFDb"},
		{"\xe4\xb8", "\uFFFD"},
		{"\xe4\xb8x", "\uFFFDx"},
		{"\xe4\xb8\xad", "中"},
		{"\xf0\x9f\x91", "\uFFFD"},
		{"\xf0\x9f\x91\xf0\x9f\x91\x8d", "\uFFFD👍"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		{"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xf0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
		{"\xc0\xaf", "\uFFFD\uFFFD"},
		{"\x80é", "\uFFFDé"},
		{"\xe0\xa0\xc3\xa9", "\uFFFDé"},
	} {
		if got, want := tok.Encode(x.bytes), tok.Encode(x.want); !slices.Equal(got, want) {
			t.Errorf("%+q encodes to %v, want %v", x.bytes, got, want)
		}
		ids := byteTokens(t, tok, x.bytes)
		if got := tok.Decode(ids); got != x.want {
			t.Errorf("%+q decodes to %+q, want %+q", x.bytes, got, x.want)
		}
		if got := stream(t, tok.Stream(), ids); got != x.want {
			t.Errorf("%+q streams as %+q, want %+q", x.bytes, got, x.want)
		}
	}
}

// byteTokens gives the tokens of single bytes.
func byteTokens(t *testing.T, tok *Tokenizer, bytes string) []int32 {
	t.Helper()
	var ids []int32
	for i := range len(bytes) {
		id, ok := tok.ID(string(letter(bytes[i])))
		if !ok {
			t.Fatalf("byte %#x has no token", bytes[i])
		}
		ids = append(ids, id)
	}
	return ids
}

func TestStreamWaitsForWholeCharacters(t *testing.T) {
	tok := gopher(t)
	s := tok.Stream()
	var got []string
	for _, id := range byteTokens(t, tok, "a👍b\xe4") {
		got = append(got, s.Push(id))
	}
	got = append(got, s.Flush(), s.Push(byteTokens(t, tok, "c")[0]))
	if want := []string{"a", "", "", "", "👍", "b", "", "\uFFFD", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLettersAreABijection(t *testing.T) {
	seen := map[rune]bool{}
	for b := range 256 {
		c := letter(byte(b))
		back, ok := unletter(c)
		if !ok || int(back) != b || seen[c] {
			t.Errorf("byte %#x is %q, which is %#x %v", b, c, back, ok)
		}
		seen[c] = true
	}
	for c := rune(0); c < 0x300; c++ {
		if _, ok := unletter(c); ok != seen[c] {
			t.Errorf("%q is a letter: %v, want %v", c, ok, seen[c])
		}
	}
}

// TestLongRuns has words of a quarter million symbols: they must not take quadratic time,
// which would be minutes.
func TestLongRuns(t *testing.T) {
	tok := gopher(t)
	for _, unit := range []string{" ", "\n", "a", "A", "/", "é", "中", "👍", "\u0301", "<", "<|im_", "ab"} {
		text := strings.Repeat(unit, 1<<18/len(unit))
		if got := tok.Decode(tok.Encode(text)); got != text {
			t.Errorf("run of %q comes back with %d of %d bytes", unit, len(got), len(text))
		}
	}
}

func TestManyGoroutinesEncode(t *testing.T) {
	tok := load(t, "testdata/golden/qwen.json")
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("Zeile %d: e\u0301, 中文 <tool> python ", i), 1+i)
	}
	want := make([][]int32, len(texts))
	for i, text := range texts {
		want[i] = tok.Encode(text)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i, text := range texts {
				if !slices.Equal(tok.Encode(text), want[i]) {
					t.Errorf("text %d gives other ids", i)
				}
			}
		})
	}
	wait.Wait()
}

// FuzzEncode: text comes back, and a stream returns what Decode does.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "Hello, world!", "it's  12345\r\n\t{}", "<|im_start|>x<|im_end", "é e\u0301 👨‍👩‍👧 中\u0085\u2028", "\xff\xe4\xb8", strings.Repeat(" a", 99)} {
		f.Add(seed)
	}
	tok := gopher(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text)
		if got := tok.Decode(ids); utf8.ValidString(text) && got != text {
			t.Errorf("%+q comes back as %+q", text, got)
		}
		if got, want := stream(t, tok.Stream(), ids), validText(text); got != want {
			t.Errorf("%+q streams as %+q, want %+q", text, got, want)
		}
	})
}
