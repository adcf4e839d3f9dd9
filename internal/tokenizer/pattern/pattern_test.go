package pattern

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tfbatch/internal/tokenizer/ucd"
)

var oracle = flag.String("oracle", "", "directory that internal/tokenizer/testdata/oracle.py run has filled")

// question is one expression and, for some texts, the pieces that the library cuts: matches
// and what lies between, then what lies between alone.
type question struct {
	Expr string               `json:"expr"`
	Rows [][3]json.RawMessage `json:"rows"`
	Rest string               `json:"rest"` // for a class: SHA-256 of the code points not in it
}

// TestExpressions compares random expressions with Oniguruma's matches, in both programs.
func TestExpressions(t *testing.T) {
	compareExpressions(t, filepath.Join("testdata", "expressions.jsonl"))
}

func TestOracleExpressions(t *testing.T) {
	if *oracle == "" {
		t.Skip("needs -oracle DIR")
	}
	compareExpressions(t, filepath.Join(*oracle, "expressions.pattern"))
}

func compareExpressions(t *testing.T, file string) {
	texts, refused := 0, 0
	for q := range questions(t, file) {
		p, err := Compile(q.Expr)
		if err != nil {
			refused++ // by name: TestRefused
			continue
		}
		for _, row := range q.Rows {
			var text string
			var pieces, between []string
			unmarshal(t, row[0], &text)
			unmarshal(t, row[1], &pieces)
			unmarshal(t, row[2], &between)
			texts++
			for _, left := range patience {
				gotPieces, gotBetween := cut(p, text, left)
				if !slices.Equal(gotPieces, pieces) || !slices.Equal(gotBetween, between) {
					t.Errorf("%s on %+q, slow after %d\n got %+q %+q\nwant %+q %+q", q.Expr, text, left, gotPieces, gotBetween, pieces, between)
				}
			}
		}
	}
	t.Logf("%d texts; %d expressions refused", texts, refused)
	if texts == 0 {
		t.Error("nothing was compared")
	}
}

// patience are the steps back after which the slow program takes over: at once, halfway, never.
var patience = []int{0, 3, 1 << 30}

// cut gives the matches with what lies between, and what lies between alone.
func cut(p *Pattern, text string, left int) (pieces, between []string) {
	m := newMachine(p, text)
	m.left = left
	keep := func(to *[]string, s string) {
		if s != "" {
			*to = append(*to, s)
		}
	}
	done := 0
	for start, end := range m.all {
		keep(&pieces, text[done:start])
		keep(&between, text[done:start])
		keep(&pieces, text[start:end])
		done = end
	}
	keep(&pieces, text[done:])
	keep(&between, text[done:])
	return pieces, between
}

// TestOracleClasses compares every code point with every class by name.
func TestOracleClasses(t *testing.T) {
	if *oracle == "" {
		t.Skip("needs -oracle DIR")
	}
	var all strings.Builder
	for c := rune(0); c <= utf8.MaxRune; c++ {
		if utf8.ValidRune(c) {
			all.WriteRune(c)
		}
	}
	for q := range questions(t, filepath.Join(*oracle, "classes.pattern")) {
		p, err := Compile(q.Expr)
		if err != nil {
			t.Fatal(err)
		}
		_, between := cut(p, all.String(), 1<<30)
		if sum := sha256.Sum256([]byte(strings.Join(between, ""))); hex.EncodeToString(sum[:]) != q.Rest {
			t.Errorf("%s: another set of code points", q.Expr)
		}
	}
}

// TestClassSizes pins the tables: the counts are those of Unicode 16.0.
func TestClassSizes(t *testing.T) {
	for expr, want := range map[string]int{`\p{L}`: 141028, `\p{Lu}`: 1858, `\p{N}`: 1911, `\p{Han}`: 99030, `\s`: 25, `\w`: 144671, `[\w]`: 144665, `.`: 1112063} {
		root, err := parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, r := range root.set.Intersect(ucd.Ranges{{Lo: 0xD800, Hi: 0xDFFF}}.Complement()) {
			got += int(r.Hi-r.Lo) + 1
		}
		if got != want {
			t.Errorf("%s holds %d code points, want %d", expr, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for expr, want := range map[string]string{
		`(a)\1`:           `escape \1 is not supported`,
		`(?<=a)b`:         `group (?<= is not supported`,
		`(?<name>a)`:      `group (?<n is not supported`,
		`(?>a)`:           `group (?>a is not supported`,
		`(?i)a`:           `group (?i) is not supported`,
		`(?=ab)`:          `look-ahead over anything but one code point`,
		`(?!a*)`:          `look-ahead over anything but one code point`,
		`\bword`:          `escape \b is not supported`,
		`\h`:              `escape \h is not supported`,
		`a{2}?`:           `{n}? is not supported`,
		`a{3,2}`:          `interval {3,2} is not supported`,
		`a{1000}`:         `interval {1000} is not supported`,
		`a{x}`:            `interval {x} is not supported`,
		`(?:ab)++`:        `possessive repeat of more than one`,
		`(?:a*)+`:         `repeat of what can be empty`,
		`(?:(?!a))*`:      `repeat of what can be empty`,
		`*a`:              `'*' has nothing to repeat`,
		`a]`:              `']' must be escaped`,
		`[a`:              `ends too early`,
		`[]`:              `] at the start of a class`,
		`[[:alpha:]]`:     `POSIX brackets`,
		`[z-a]`:           `ends below its start`,
		`[\d-z]`:          `- after a class must be escaped`,
		`[a&&]`:           `] at the start of a class`,
		`[^\s\S]`:         `holds no code point`,
		`[a&&b]`:          `holds no code point`,
		`(?i:é)`:          `'é' under (?i:) is not supported`,
		`(?i:\p{Lu})`:     `\p{Lu} under (?i:) is not supported`,
		`(?i:[é])`:        `'é' under (?i:) is not supported`,
		`(?i:class)`:      `"ss" under (?i:) folds to single`,
		`(?i:F(?:x|I))`:   `"fi" under (?i:) folds to single`,
		`(?i:s)(?i:\x54)`: `"st" under (?i:) folds to single`,
		`\p{Greek}`:       `character class "Greek" is not known`,
		`\pL`:             `needs a name in braces`,
		`\x{110000}`:      `is not a code point`,
		`\uD800`:          `is not a code point`,
		`\x{41`:           `\x is not complete`,
		`\u004`:           `\u is not complete`,
		`\xE9`:            `is not a code point`,
		`(a`:              `missing )`,
		`a)`:              `unmatched )`,
		`a{2}{2}{2}{2}`:   `more than 3 quantifiers`,
		`(?=\s).*`:        `.* behind a look-ahead`,
		"\xff":            `not valid UTF-8`,
		`(?:a{99}){99}`:   `unrolls to more than`,
		strings.Repeat("(", 40) + strings.Repeat(")", 40): `nested deeper than`,
		strings.Repeat("a", 1<<15):                        `limit is`,
	} {
		if _, err := Compile(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: error %v, want one with %q", expr, err, want)
		}
	}
}

// TestIntersections: && binds weaker than what stands beside it, and is taken from the left.
func TestIntersections(t *testing.T) {
	for expr, want := range map[string]string{
		`[a-z&&[^c-x]&&[^b]]`: "ayz",
		`[^a-y&&b-z]`:         "a" + "z" + "1",
		`[ab&&bc]`:            "b",
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for start, end := range p.All("abcxyz1") {
			got.WriteString("abcxyz1"[start:end])
		}
		if got.String() != want {
			t.Errorf("%s finds %q, want %q", expr, got.String(), want)
		}
	}
}

// TestWorkIsLinear counts the steps back of expressions that are exponential or quadratic
// for plain backtracking.
func TestWorkIsLinear(t *testing.T) {
	const size = 1 << 14
	for _, x := range []struct{ expr, text string }{
		{`(?:a|aa)+b`, strings.Repeat("a", size)},
		{`(?:a|a|a)*b`, strings.Repeat("a", size)},
		{`a*b|a`, strings.Repeat("a", size)},
		{`a*a*a*b`, strings.Repeat("a", size)},
		{`a*a++b|a`, strings.Repeat("a", size)},
		{`(?:a{1,3})+b`, strings.Repeat("a", size)},
		{`(?:\s*[\r\n]+)+x`, strings.Repeat(" \n", size/2)},
		{`(?:[^x]?[a-z]*?)?y`, strings.Repeat("z", size)},
		{o200k, strings.Repeat("Aa中 \n", size/5)},
		{llama3, strings.Repeat(" ", size)},
	} {
		p, err := Compile(x.expr)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(p, x.text)
		budget := m.left
		for range m.all {
		}
		if steps, limit := budget-m.left, 16*len(x.text)*(p.slow.choices+1); steps > limit {
			t.Errorf("%s: %d steps back for %d bytes, want at most %d", x.expr, steps, len(x.text), limit)
		}
	}
}

// FuzzCompile: no expression may crash or hang, and both programs find the same.
func FuzzCompile(f *testing.F) {
	for _, expr := range []string{llama3, o200k, gpt2, `(?:a|aa)+?b{,2}c??`, `[^\p{L}&&[^a-z]\-]++$`, `(?i:[sdmt]|ll)\z`} {
		f.Add(expr, "It's  12 \r\nÄé中 aab")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		p, err := Compile(expr)
		if err != nil {
			return
		}
		text = strings.ToValidUTF8(text, "?")
		fast, _ := cut(p, text, 1<<20)
		slow, _ := cut(p, text, 0)
		if !slices.Equal(fast, slow) {
			t.Errorf("%q on %q: fast %q, slow %q", expr, text, fast, slow)
		}
		if strings.Join(fast, "") != text {
			t.Errorf("%q on %q: pieces %q", expr, text, fast)
		}
	})
}

func questions(t *testing.T, file string) func(func(question) bool) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func(yield func(question) bool) {
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<26)
		for s.Scan() {
			var q question
			unmarshal(t, s.Bytes(), &q)
			if !yield(q) {
				return
			}
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
}

func unmarshal(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}
