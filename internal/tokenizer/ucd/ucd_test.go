package ucd

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var oracle = flag.String("oracle", "", "directory that internal/tokenizer/testdata/oracle.py run has filled")

var forms = []string{"NFC", "NFD", "NFKC", "NFKD"}

// TestNormalForms compares with the library's four forms of a text; each line has all five.
func TestNormalForms(t *testing.T) { compareForms(t, filepath.Join("testdata", "normal.jsonl")) }

func TestOracleNormalForms(t *testing.T) {
	if *oracle == "" {
		t.Skip("needs -oracle DIR")
	}
	compareForms(t, filepath.Join(*oracle, "normal.ucd"))
}

func compareForms(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	texts := 0
	made := map[string]*Normalizer{}
	for _, form := range forms {
		made[form] = normalizer(t, form)
	}
	for s := bufio.NewScanner(f); s.Scan(); texts++ {
		var row []string
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		for i, form := range forms {
			if got, want := made[form].String(row[0]), row[i+1]; got != want {
				t.Errorf("%s of %+q:\n got %+q\nwant %+q", form, row[0], got, want)
			}
		}
	}
	t.Logf("%d texts", texts)
	if texts == 0 {
		t.Error("nothing was compared")
	}
}

func normalizer(t *testing.T, form string) *Normalizer {
	t.Helper()
	n, err := NewNormalizer(form)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLongRunOfMarksIsKept(t *testing.T) {
	text := "a" + strings.Repeat("\u0301", 1000) + strings.Repeat("\u0327", 1000)
	want := "á" + strings.Repeat("\u0327", 1000) + strings.Repeat("\u0301", 999)
	if got := normalizer(t, "NFC").String(text); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := NewNormalizer("NFX"); err == nil {
		t.Error("form NFX is known")
	}
	for _, name := range []string{"", "X", "Greek", "#"} {
		if _, err := Class(name); err == nil {
			t.Errorf("class %q is known", name)
		}
	}
}

func TestSetHoldsItsRanges(t *testing.T) {
	for _, name := range []string{"L", "Nd", "White_Space", "Han", "Cn", "C"} {
		r, err := Class(name)
		if err != nil {
			t.Fatal(err)
		}
		set, rest := NewSet(r), r
		for c := rune(0); c <= utf8.MaxRune; c++ {
			for len(rest) > 0 && rest[0].Hi < c {
				rest = rest[1:]
			}
			if want := len(rest) > 0 && rest[0].Lo <= c; set.Has(c) != want {
				t.Fatalf("%s has U+%04X: %v, want %v", name, c, !want, want)
			}
		}
	}
}

func TestRangeAlgebra(t *testing.T) {
	a, b := Ranges{{5, 9}, {20, 30}}, Ranges{{0, 5}, {9, 20}, {31, 40}}
	for i, x := range []struct{ got, want Ranges }{
		{Union(b, a), Ranges{{0, 40}}},
		{a.Intersect(b), Ranges{{5, 5}, {9, 9}, {20, 20}}},
		{a.Complement().Complement(), a},
		{Ranges{}.Complement(), Ranges{{0, utf8.MaxRune}}},
		{Ranges{{0, utf8.MaxRune}}.Complement(), nil},
	} {
		if len(x.got) != len(x.want) {
			t.Fatalf("case %d: %v, want %v", i, x.got, x.want)
		}
		for k := range x.want {
			if x.got[k] != x.want[k] {
				t.Errorf("case %d: %v, want %v", i, x.got, x.want)
			}
		}
	}
}
