package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The most characters of a text that are shown: a page stays small whatever the replies are.
const (
	mostText  = 4000
	mostShort = 160
)

// text is a long text for the page.
func text(s string) string { return clip(s, mostText) }

// short is a text of one line.
func short(s string) string { return clip(strings.Join(strings.Fields(s), " "), mostShort) }

// clip cuts a text behind so many characters, says how many more there are, and makes what cannot be seen visible.
func clip(s string, most int) string {
	var b strings.Builder
	n := 0
	for at, c := range s {
		if n++; n > most {
			fmt.Fprintf(&b, " … and %s more characters", count(int64(utf8.RuneCountInString(s[at:]))))
			break
		}
		show(&b, c)
	}
	return b.String()
}

// show writes a character so that it is seen: one that controls, turns or hides others by its number.
func show(b *strings.Builder, c rune) {
	switch {
	case c == '\n' || c == '\t':
		b.WriteRune(c)
	case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == 0x200b || c == 0xfeff || unicode.Is(unicode.Co, c):
		fmt.Fprintf(b, "⟨U+%04X⟩", c)
	default:
		b.WriteRune(c)
	}
}

// count writes 1234567 as 1,234,567.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// share is a part of a whole in percent.
func share(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part > 0 && p < 0.1:
		return "< 0.1 %"
	case part < whole && p > 99.9:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(math.Round(10*p)/10, 'f', -1, 64) + " %"
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// number writes a value of an axis or a tile: 1234 as 1,234, 1.234 as 1.23, 12345678 as 12.3 M.
func number(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}} {
		if v >= u.size {
			if u.size == 1e4 {
				u.size = 1e3
			}
			return digits(v/u.size) + u.name
		}
	}
	if v >= 1000 {
		return count(int64(math.Round(v)))
	}
	return digits(v)
}

// digits has three of them.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// memory writes bytes.
func memory(v float64) string {
	switch {
	case v >= 1000<<20: // a scale in MiB has round numbers up to there
		return digits(v/(1<<30)) + " GiB"
	case v >= 1<<20:
		return digits(v/(1<<20)) + " MiB"
	}
	return digits(v/(1<<10)) + " KiB"
}

// duration writes milliseconds: "2 d 3 h", "1 h 2 min", "12 min 5 s", "3.2 s".
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	two := func(n int64, big string, m int64, small string) string {
		if m == 0 {
			return fmt.Sprint(n, " ", big)
		}
		return fmt.Sprint(n, " ", big, " ", m, " ", small)
	}
	s := int64(d.Round(time.Second).Seconds())
	switch {
	case d < time.Minute:
		return digits(d.Seconds()) + " s"
	case s < 3600:
		return two(s/60, "min", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "min")
	}
	return two(s/86400, "d", s%86400/3600, "h")
}
