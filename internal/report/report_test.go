package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"tfbatch/internal/metrics"
)

func draw(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	if !IsPage([]byte(out)) || !strings.HasSuffix(out, "</html>") {
		t.Errorf("no whole page: %.80q … %q", out, out[max(0, len(out)-20):])
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(out, bad) {
			t.Errorf("page has %q: %s", bad, around(out, bad))
		}
	}
	return out
}

func around(text, part string) string {
	at := strings.Index(text, part)
	return text[max(0, at-80):min(len(text), at+80)]
}

// hostile is what a row may hold.
const hostile = "</div></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\" onload=\"x' \x00\x1b[31m\u202e\u2066\u200b\x7f\u0085\xff&lt;"

// TestHostileTextStaysText puts the same text wherever a page has text from outside.
func TestHostileTextStaysText(t *testing.T) {
	p := &Page{
		Name: hostile, State: "complete", Mood: Good, About: hostile, Version: hostile, Missing: hostile, Note: hostile, Job: hostile,
		Verdict: Verdict{Good, "equal", []string{hostile}}, Rows: 2, Errors: 1, Replies: 1,
		Finishes: []Count{{hostile, 1}}, Codes: []Count{{hostile, 1}},
		Failures: []Row{{ID: hostile, Error: hostile}},
		Samples:  []Row{{ID: hostile, Why: "of a fair sample", Turns: []Turn{{hostile, hostile}}, Replies: []Reply{{Text: hostile, Finish: hostile}}}},
		Facts:    []Fact{{hostile, hostile}}, Runs: []Run{{time.Unix(0, 0), hostile}},
	}
	out := draw(t, p)
	for _, bad := range []string{"<script", "<img", `onload="`, "&lt;&lt;"} {
		if strings.Contains(out, bad) {
			t.Errorf("page has %s: %s", bad, around(out, bad))
		}
	}
	if n := strings.Count(out, "&lt;script&gt;alert(1)&lt;/script&gt;"); n < 18 {
		t.Errorf("the text is there %d times, want 18 or more", n)
	}
	if n := strings.Count(out, "</style>"); n != 1 {
		t.Errorf("%d styles end", n)
	}
	for i, c := range out {
		if c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
			t.Fatalf("page has %U: %q", c, out[max(0, i-20):i+20])
		}
	}
	if !strings.Contains(out, "⟨U+001B⟩[31m⟨U+202E⟩⟨U+2066⟩⟨U+200B⟩⟨U+007F⟩⟨U+0085⟩\uFFFD&amp;lt;") {
		t.Errorf("what cannot be seen is not shown: %s", around(out, "⟨U+"))
	}
}

// TestHugeTextsMakeSmallPages: a reply of 100 MB is cut with a word.
func TestHugeTextsMakeSmallPages(t *testing.T) {
	p := &Page{Name: strings.Repeat("n", 1e6), Samples: []Row{{ID: "a", Replies: []Reply{{Text: strings.Repeat("é", 50_000_000)}}}}}
	out := draw(t, p)
	if len(out) > 100_000 || !strings.Contains(out, "… and 49,996,000 more characters") {
		t.Errorf("page has %d bytes: %s", len(out), around(out, "more characters"))
	}
}

func TestNothingIsAPageToo(t *testing.T) {
	out := draw(t, &Page{Name: "x", State: "not begun", Missing: "metrics.jsonl is not there"})
	for _, want := range []string{"not begun", "No measurements: ", "metrics.jsonl is not there", "No row has failed.", "No row has a reply yet.", "Nothing to draw yet."} {
		if !strings.Contains(out, want) {
			t.Errorf("page has no %q", want)
		}
	}
}

func sample(start, ms, tokens int64) metrics.Sample {
	return metrics.Sample{End: 1_800_000_000_000 + start + ms, Span: ms, Tokens: tokens, Rounds: 100, Lanes: 4, LaneTime: 3 * ms, RSS: 100 << 20}
}

// TestTimelineLeavesOutBreaks: two runs with a weekend between them, and a sample that lies in two bins.
func TestTimelineLeavesOutBreaks(t *testing.T) {
	weekend := (60 * time.Hour).Milliseconds()
	l := newTimeline(&metrics.Series{Every: 100 * time.Millisecond, Samples: []metrics.Sample{
		sample(0, 1000, 10), sample(1000, 3000, 60), sample(weekend, 2000, 50), sample(weekend+2000, 2000, 0),
	}})
	if l.length != 8000 || len(l.parts) != 2 || len(l.bins) != 4 {
		t.Fatalf("%d ms in %d parts and %d bins, want 8000, 2, 4", l.length, len(l.parts), len(l.bins))
	}
	for i, want := range []float64{15, 20, 25, 0} { // tokens/s in bins of two seconds
		if got := l.rate(l.bins[i].tokens); math.Abs(got-want) > 1e-9 {
			t.Errorf("bin %d has %v tokens/s, want %v", i, got, want)
		}
		if got := l.busy(&l.bins[i]); math.Abs(got-3) > 1e-9 {
			t.Errorf("bin %d has %v lanes in use, want 3", i, got)
		}
	}
	c := l.charts()[0]
	if len(c.breaks) != 1 || c.breaks[0] != wide/2 || !strings.Contains(c.text, "15 tokens/s on average while running, at most 25 over 2 s.") || !strings.Contains(c.text, " 1 break between runs dashed") {
		t.Errorf("breaks at %v, %q", c.breaks, c.text)
	}
}

// TestShardsBesideEachOtherAddUp: two machines in the same second.
func TestShardsBesideEachOtherAddUp(t *testing.T) {
	l := newTimeline(&metrics.Series{Every: 100 * time.Millisecond, Samples: []metrics.Sample{
		sample(0, 1000, 10), sample(0, 1000, 30), sample(1000, 1000, 10), sample(1000, 1000, 30),
	}})
	if l.length != 2000 || l.lanes != 8 || l.rate(l.bins[1].tokens) != 40 || l.busy(&l.bins[0]) != 6 {
		t.Errorf("%d ms, %v lanes, %v tokens/s, %v in use", l.length, l.lanes, l.rate(l.bins[1].tokens), l.busy(&l.bins[0]))
	}
}

func TestTimelineKeepsEveryToken(t *testing.T) {
	for name, list := range map[string][]metrics.Sample{
		"one":        {sample(0, 100, 7)},
		"no time":    {sample(0, 0, 7)},
		"many":       many(3000),
		"same place": {sample(0, 100, 1), sample(0, 100, 2), sample(50, 100, 3), sample(-5000, 1, 4)},
	} {
		l := newTimeline(&metrics.Series{Every: 100 * time.Millisecond, Samples: list})
		if name == "no time" {
			if l != nil {
				t.Errorf("%s: a timeline of no length", name)
			}
			continue
		}
		var want, got float64
		for _, s := range list {
			want += float64(s.Tokens)
		}
		for _, b := range l.bins {
			got += b.tokens
		}
		if math.Abs(got-want) > 1e-6*want || len(l.bins) > mostBins {
			t.Errorf("%s: %v tokens in %d bins, want %v", name, got, len(l.bins), want)
		}
		draw(t, &Page{Series: &metrics.Series{Every: 100 * time.Millisecond, Samples: list}})
	}
}

func many(n int) (list []metrics.Sample) {
	for i := range n {
		list = append(list, sample(int64(i)*137, 137, int64(i%13)))
	}
	return list
}

func TestDraftingIsDrawnByDepth(t *testing.T) {
	s := sample(0, 1000, 30)
	s.Guessed, s.Kept = []int64{10, 10, 5}, []int64{8, 2}
	out := draw(t, &Page{Series: &metrics.Series{Samples: []metrics.Sample{s}}})
	for _, want := range []string{"A forward of a lane gave 1.5 tokens", "10 of 25 guesses were kept: 40 %", "depth 1: 8 of 10", "depth 3: 0 of 5", "× 1.5"} {
		if !strings.Contains(out, want) {
			t.Errorf("page has no %q", want)
		}
	}
	if out := draw(t, &Page{Series: &metrics.Series{Samples: []metrics.Sample{sample(0, 1000, 30)}}}); strings.Contains(out, "Drafting gain") {
		t.Error("a page without guesses tells of a gain")
	}
}

func TestLengthsFallIntoBars(t *testing.T) {
	for name, c := range map[string]struct {
		lengths []int
		edges   string
		text    string
	}{
		"one":     {[]int{7}, "[7 8]", "7 tokens on average; half have at most 7, 95 % at most 7, the longest 7."},
		"zero":    {[]int{0, 0}, "[0 1]", "0 tokens on average; half have at most 0, 95 % at most 0, the longest 0."},
		"few":     {[]int{3, 3, 5}, "[3 4 5 6]", "3.67 tokens on average; half have at most 3, 95 % at most 5, the longest 5."},
		"wide":    {[]int{10, 290}, "[0 20 40 60 80 100 120 140 160 180 200 220 240 260 280 300]", "150 tokens on average; half have at most 10, 95 % at most 290, the longest 290."},
		"far off": {[]int{1, 1, 1, 100}, "[0 1 2 4 8 16 32 64 128]", "25.8 tokens on average; half have at most 1, 95 % at most 100, the longest 100."},
	} {
		var l Lengths
		for _, n := range c.lengths {
			l.Add(n)
		}
		chart := l.chart("x", "x", "replies")
		if got := fmt.Sprint(l.edges()); got != c.edges || chart.text != c.text {
			t.Errorf("%s: edges %s, want %s; %q", name, got, c.edges, chart.text)
		}
		if len(chart.rects) > mostBars+1 {
			t.Errorf("%s: %d bars", name, len(chart.rects))
		}
	}
	var l Lengths
	for n := range 200_000 {
		l.Add(n)
	}
	if n := len(l.edges()); n > mostBars+2 {
		t.Errorf("%d edges of a wide range", n)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 1.234: "1.23", 12.34: "12.3", 999: "999", 1234: "1,234", 12345: "12.3 k", 1.5e6: "1.5 M", 2e9: "2 G"} {
		if got := number(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	for ms, want := range map[int64]string{0: "0 s", 440: "0.44 s", 52400: "52.4 s", 61000: "1 min 1 s", 3_600_000: "1 h", 3_720_000: "1 h 2 min", 90_000_000: "1 d 1 h"} {
		if got := duration(ms); got != want {
			t.Errorf("%d ms is %q, want %q", ms, got, want)
		}
	}
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "–"}, {0, 5, "0 %"}, {1, 100000, "< 0.1 %"}, {99999, 100000, "> 99.9 %"}, {5, 5, "100 %"}, {1, 3, "33.3 %"}} {
		if got := share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d is %q, want %q", c.part, c.whole, got, c.want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", -1000: "-1,000", 1234567: "1,234,567", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
