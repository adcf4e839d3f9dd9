package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func strftimeNow(r *run, a []Value) (Value, error) {
	format, err := wantText(a[0])
	if err != nil {
		return nil, err
	}
	out := &buffer{}
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			break
		}
		if err := out.write(r, format[:i]); err != nil {
			return nil, err
		}
		s, n, err := strftimeOne(r.env.Now, format[i+1:])
		if err != nil {
			return nil, err
		}
		if err := out.write(r, s); err != nil {
			return nil, err
		}
		format = format[i+1+n:]
	}
	if err := out.write(r, format); err != nil {
		return nil, err
	}
	return str(out.String()), nil
}

// strftimeOne formats the directive whose text behind the % s starts with, as the C locale does,
// and returns how many bytes of s it took. datetime.now() of Python has no zone, so %z and %Z
// are empty. The flag - leaves the padding out.
func strftimeOne(t time.Time, s string) (string, int, error) {
	taken := 1
	bare := strings.HasPrefix(s, "-")
	if bare {
		s, taken = s[1:], 2
	}
	if s == "" {
		return "", 0, fmt.Errorf("strftime format ends in a lone %%")
	}
	if long, ok := strftimeLong[s[0]]; ok && !bare {
		out, err := strftimeAll(t, long)
		return out, taken, err
	}
	if n, width, fill, ok := strftimeNumber(t, s[0]); ok {
		digits := strconv.Itoa(n)
		if !bare {
			digits = strings.Repeat(fill, max(width-len(digits), 0)) + digits
		}
		return digits, taken, nil
	}
	if text, ok := strftimeText(t, s[0]); ok && !bare {
		return text, taken, nil
	}
	return "", 0, fmt.Errorf("strftime directive %%%s is not supported", s[:1])
}

// strftimeLong are the directives that stand for several others.
var strftimeLong = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'x': "%m/%d/%y", 'X': "%H:%M:%S", 'D': "%m/%d/%y",
	'F': "%Y-%m-%d", 'T': "%H:%M:%S", 'R': "%H:%M", 'r': "%I:%M:%S %p",
}

func strftimeAll(t time.Time, format string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		s, n, err := strftimeOne(t, format[i+1:])
		if err != nil {
			return "", err
		}
		out.WriteString(s)
		i += n
	}
	return out.String(), nil
}

func strftimeNumber(t time.Time, directive byte) (n, width int, fill string, ok bool) {
	isoYear, isoWeek := t.ISOWeek()
	hour12 := (t.Hour()+11)%12 + 1
	sunday, monday := int(t.Weekday()), (int(t.Weekday())+6)%7
	width, fill = 2, "0"
	switch directive {
	case 'd':
		n = t.Day()
	case 'e':
		n, fill = t.Day(), " "
	case 'm':
		n = int(t.Month())
	case 'y':
		n = t.Year() % 100
	case 'Y':
		n, width = t.Year(), 1
	case 'C':
		n = t.Year() / 100
	case 'H':
		n = t.Hour()
	case 'k':
		n, fill = t.Hour(), " "
	case 'I':
		n = hour12
	case 'l':
		n, fill = hour12, " "
	case 'M':
		n = t.Minute()
	case 'S':
		n = t.Second()
	case 'j':
		n, width = t.YearDay(), 3
	case 'w':
		n, width = sunday, 1
	case 'u':
		n, width = monday+1, 1
	case 'U':
		n = (t.YearDay() + 6 - sunday) / 7
	case 'W':
		n = (t.YearDay() + 6 - monday) / 7
	case 'V':
		n = isoWeek
	case 'G':
		n, width = isoYear, 1
	case 'g':
		n = isoYear % 100
	default:
		return 0, 0, "", false
	}
	return n, width, fill, true
}

func strftimeText(t time.Time, directive byte) (string, bool) {
	switch directive {
	case 'a':
		return t.Format("Mon"), true
	case 'A':
		return t.Format("Monday"), true
	case 'b', 'h':
		return t.Format("Jan"), true
	case 'B':
		return t.Format("January"), true
	case 'p':
		return t.Format("PM"), true
	case 'P':
		return strings.ToLower(t.Format("PM")), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'z', 'Z':
		return "", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case '%':
		return "%", true
	}
	return "", false
}
