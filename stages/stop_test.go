package stages

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pieces is a stream whose ids are indexes of texts.
type pieces []string

func (p pieces) Push(id int32) string { return p[id] }

// TestStopIsFoundWhereverTokensEnd compares the stopper with a search of the whole text.
func TestStopIsFoundWhereverTokensEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringMatching(`[ab\n]{0,4}`)
		texts := rapid.SliceOfN(piece, 1, 12).Draw(t, "texts")
		stops := rapid.SliceOfN(rapid.StringMatching(`[ab\n]{1,4}`), 1, 3).Draw(t, "stops")
		s := newStopper(pieces(texts), stops)
		so := ""
		for i, text := range texts {
			so += text
			want := false
			for _, stop := range stops {
				want = want || strings.Contains(so, stop)
			}
			if got := s.Push(int32(i)); got != want {
				t.Fatalf("after %q: got %v, want %v", so, got, want)
			}
			if want {
				return
			}
			if cut := cutStop(so, stops); cut != so {
				t.Fatalf("cut %q to %q without a stop", so, cut)
			}
		}
	})
}

func TestCutStop(t *testing.T) {
	for _, c := range []struct{ text, stops, want string }{
		{"answer END more", "END", "answer "},
		{"a STOP b END", "END|STOP", "a "},
		{"END", "END", ""},
		{"none", "END", "none"},
		{"aXXb", "X|XX", "a"},
	} {
		if got := cutStop(c.text, strings.Split(c.stops, "|")); got != c.want {
			t.Errorf("%q at %q: got %q, want %q", c.text, c.stops, got, c.want)
		}
	}
}
