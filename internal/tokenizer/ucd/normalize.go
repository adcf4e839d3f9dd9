package ucd

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed normalization.txt
var normalization string

// The conjoining jamo behind Hangul syllables (Unicode 9.0, section 3.12).
const (
	hangulS, hangulL, hangulV, hangulT = 0xAC00, 0x1100, 0x1161, 0x11A7
	countL, countV, countT             = 19, 21, 28
	countS                             = countL * countV * countT
)

type pair struct{ a, b rune }

// Normalizer brings text into one normal form. It is read-only after NewNormalizer.
//
// It is not golang.org/x/text/unicode/norm because that one follows newer tables, and
// cuts long runs of marks with U+034F (UAX 15, Stream-Safe), which changes token ids.
type Normalizer struct {
	class   map[rune]uint8
	split   map[rune][]rune // full decompositions
	join    map[pair]rune   // nil in the decomposed forms
	touched *Set            // code points that may change or move something before them
}

// NewNormalizer makes the normalizer of "NFC", "NFD", "NFKC" or "NFKD".
func NewNormalizer(form string) (*Normalizer, error) {
	kind, ok := map[string]struct{ compatible, compose bool }{
		"NFD": {}, "NFC": {compose: true}, "NFKD": {compatible: true}, "NFKC": {compatible: true, compose: true},
	}[form]
	if !ok {
		return nil, fmt.Errorf("normal form %q is not known", form)
	}
	n := &Normalizer{class: map[rune]uint8{}, split: map[rune][]rune{}, join: map[pair]rune{}}
	for line := range strings.Lines(normalization) {
		n.read(strings.TrimSpace(line), kind.compatible)
	}
	if !kind.compose {
		n.join = nil
	}
	n.touched = n.touch()
	return n, nil
}

// read takes in one line of normalization.txt.
func (n *Normalizer) read(line string, compatible bool) {
	key, list, _ := strings.Cut(line, " ")
	switch {
	case key == "ccc":
		class, points, _ := strings.Cut(list, " ")
		v, err := strconv.ParseUint(class, 10, 8)
		if err != nil {
			panic(fmt.Sprintf("ucd: embedded table holds class %q", class))
		}
		for _, r := range parseRanges(points) {
			for c := r.Lo; c <= r.Hi; c++ {
				n.class[c] = uint8(v)
			}
		}
	case key == "canonical", key == "compatible" && compatible:
		for item := range strings.FieldsSeq(list) {
			from, to := parseMapping(item)
			n.split[from[0]] = to
		}
	case key == "pair":
		for item := range strings.FieldsSeq(list) {
			from, to := parseMapping(item)
			n.join[pair{from[0], from[1]}] = to[0]
		}
	}
}

// parseMapping reads "A+B=C+D".
func parseMapping(item string) (from, to []rune) {
	left, right, _ := strings.Cut(item, "=")
	for c := range strings.SplitSeq(left, "+") {
		from = append(from, code(c))
	}
	for c := range strings.SplitSeq(right, "+") {
		to = append(to, code(c))
	}
	return from, to
}

// touch finds the code points at which plain copying must stop.
func (n *Normalizer) touch() *Set {
	var r []Range
	for c := range n.class {
		r = append(r, Range{c, c})
	}
	for c := range n.split {
		if out := n.run(nil, string(c)); n.join == nil || string(out) != string(c) {
			r = append(r, Range{c, c})
		}
	}
	for p := range n.join {
		r = append(r, Range{p.b, p.b})
	}
	if n.join == nil {
		r = append(r, Range{hangulS, hangulS + countS - 1})
	} else {
		r = append(r, Range{hangulV, hangulV + countV - 1}, Range{hangulT + 1, hangulT + countT - 1})
	}
	return NewSet(Union(r))
}

// String returns s in the normal form. s must be valid UTF-8.
func (n *Normalizer) String(s string) string {
	var out strings.Builder
	var scratch []rune
	done, last := 0, 0 // s[:done] is in out; last is where the latest code point starts
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			last = i
			i++
			continue
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		if !n.touched.Has(c) {
			last = i
			i += size
			continue
		}
		end := i + n.extent(s[i:])
		out.WriteString(s[done:last])
		scratch = n.run(scratch[:0], s[last:end])
		for _, c := range scratch {
			out.WriteRune(c)
		}
		done, i = end, end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// extent is the length of the touched code points at the start of s.
func (n *Normalizer) extent(s string) int {
	i := 0
	for i < len(s) {
		c, size := utf8.DecodeRuneInString(s[i:])
		if !n.touched.Has(c) {
			break
		}
		i += size
	}
	return i
}

// run appends the normal form of s to dst: decompose, order the marks, compose (UAX 15).
func (n *Normalizer) run(dst []rune, s string) []rune {
	for _, c := range s {
		dst = n.decompose(dst, c)
	}
	n.order(dst)
	if n.join != nil {
		dst = n.compose(dst)
	}
	return dst
}

func (n *Normalizer) decompose(dst []rune, c rune) []rune {
	if i := c - hangulS; i >= 0 && i < countS {
		dst = append(dst, hangulL+i/(countV*countT), hangulV+i%(countV*countT)/countT)
		if t := i % countT; t > 0 {
			dst = append(dst, hangulT+t)
		}
		return dst
	}
	if to, ok := n.split[c]; ok {
		return append(dst, to...)
	}
	return append(dst, c)
}

// order sorts every run of marks by combining class and keeps the order inside a class.
func (n *Normalizer) order(text []rune) {
	for i := 0; i < len(text); i++ {
		from := i
		for i < len(text) && n.class[text[i]] != 0 {
			i++
		}
		slices.SortStableFunc(text[from:i], func(a, b rune) int { return int(n.class[a]) - int(n.class[b]) })
	}
}

// compose joins in place: a mark with the starter before it, unless one of its own
// class or higher stands between.
func (n *Normalizer) compose(text []rune) []rune {
	out := text[:0]
	starter, blocked := -1, -1 // blocked: class of the last mark kept after the starter
	for _, c := range text {
		class := int(n.class[c])
		if starter >= 0 && blocked < class {
			if joined, ok := n.joined(out[starter], c); ok {
				out[starter] = joined
				continue
			}
		}
		if class == 0 {
			starter, blocked = len(out), -1
		} else if starter >= 0 {
			blocked = class
		}
		out = append(out, c)
	}
	return out
}

func (n *Normalizer) joined(a, b rune) (rune, bool) {
	l, v := a-hangulL, b-hangulV
	if l >= 0 && l < countL && v >= 0 && v < countV {
		return hangulS + (l*countV+v)*countT, true
	}
	s, t := a-hangulS, b-hangulT
	if s >= 0 && s < countS && s%countT == 0 && t > 0 && t < countT {
		return a + t, true
	}
	c, ok := n.join[pair{a, b}]
	return c, ok
}
