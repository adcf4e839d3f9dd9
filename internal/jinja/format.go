package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatter is one run of str.format, as string.Formatter does it in the sandbox.
type formatter struct {
	r      *run
	out    buffer
	args   []Value
	kwargs []kwarg
	auto   int  // the next {}; -1 once a field had a number
	began  bool // whether {} was used
}

func formatMethod(r *run, args []Value, kwargs []kwarg) (Value, error) {
	s, _ := text(args[0])
	if _, ok := args[0].(markup); ok {
		return nil, errors.New("format of a Markup is not supported")
	}
	f := &formatter{r: r, args: args[1:], kwargs: kwargs}
	if err := f.run(s); err != nil {
		return nil, err
	}
	return str(f.out.String()), nil
}

func (f *formatter) run(s string) error {
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			return f.out.write(f.r, s)
		}
		if err := f.out.write(f.r, s[:i]); err != nil {
			return err
		}
		brace := s[i]
		s = s[i+1:]
		if strings.HasPrefix(s, string(brace)) {
			if err := f.out.write(f.r, string(brace)); err != nil {
				return err
			}
			s = s[1:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if brace == '}' || end < 0 {
			return fmt.Errorf("single '%c' encountered in format string", brace)
		}
		if strings.Contains(s[:end], "{") {
			return errors.New("fields inside the fields of a format string are not supported")
		}
		if err := f.field(s[:end]); err != nil {
			return err
		}
		s = s[end+1:]
	}
	return nil
}

// field writes one {name!conversion:spec}.
func (f *formatter) field(field string) error {
	name, spec, _ := strings.Cut(field, ":")
	name, conversion, converts := strings.Cut(name, "!")
	v, err := f.value(name)
	if err != nil {
		return err
	}
	if converts {
		var s string
		switch conversion {
		case "s":
			s, err = f.r.str(v)
		case "r":
			s, err = f.r.repr(v)
		default:
			err = fmt.Errorf("conversion !%s is not supported", conversion)
		}
		v = str(s)
	}
	if err != nil {
		return err
	}
	s, err := formatValue(f.r, v, spec)
	if err != nil {
		return err
	}
	return f.out.write(f.r, s)
}

// value finds name, then its .attributes and [items].
func (f *formatter) value(name string) (Value, error) {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	if end == 0 && name != "" {
		return nil, errors.New("field of a format string has no name")
	}
	v, err := f.first(name[:end])
	rest := name[end:]
	for err == nil && rest != "" {
		var part string
		if rest[0] == '.' {
			part, rest = cutPart(rest[1:], ".[")
			if part == "" {
				return nil, errors.New("empty attribute in format string")
			}
			v, err = getAttr(f.r, v, part)
			continue
		}
		closing := strings.IndexByte(rest, ']')
		if closing < 2 || closing+1 < len(rest) && rest[closing+1] != '.' && rest[closing+1] != '[' {
			return nil, errors.New("bad [item] in format string")
		}
		part, rest = rest[1:closing], rest[closing+1:]
		key := Value(str(part))
		if n, notInt := strconv.ParseInt(part, 10, 64); notInt == nil && part[0] != '-' && part[0] != '+' {
			key = integer(n)
		}
		v, err = getItem(f.r, v, key)
	}
	return v, err
}

func cutPart(s, ends string) (part, rest string) {
	if i := strings.IndexAny(s, ends); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func (f *formatter) first(name string) (Value, error) {
	n, err := strconv.Atoi(name)
	switch {
	case name == "":
		if f.auto < 0 {
			return nil, errors.New("cannot switch from manual field specification to automatic field numbering")
		}
		n, f.auto, f.began = f.auto, f.auto+1, true
	case err == nil && isDigit(name[0]):
		if f.began {
			return nil, errors.New("cannot switch from automatic field numbering to manual field specification")
		}
		f.auto = -1
	default:
		for _, kw := range f.kwargs {
			if kw.name == name {
				return kw.value, nil
			}
		}
		return nil, fmt.Errorf("format string asks for '%s', which was not given", name)
	}
	if n >= len(f.args) {
		return nil, fmt.Errorf("format string asks for argument %d of %d", n, len(f.args))
	}
	return f.args[n], nil
}

// spec is Python's [[fill]align][sign][#][0][width][grouping][.precision][type].
type spec struct {
	fill      string // a space, unless given or made 0 by a width that starts with it
	align     byte   // 0 when not given
	zero      bool   // the width starts with 0
	sign      byte
	alternate bool
	width     int
	grouping  byte
	precision int // -1 when not given
	verb      byte
}

func parseSpec(s string) (spec, error) {
	sp := spec{fill: " ", precision: -1}
	filled := false
	_, n := utf8.DecodeRuneInString(s)
	if n < len(s) && strings.IndexByte("<>=^", s[n]) >= 0 {
		filled = true
		sp.fill, sp.align, s = s[:n], s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>=^", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	sp.sign, s = takeByte(s, "+- ")
	alternate, s := takeByte(s, "#")
	sp.alternate = alternate != 0
	if zero, rest := takeByte(s, "0"); zero != 0 && !filled {
		sp.fill, sp.zero, s = "0", true, rest
	}
	var err error
	if sp.width, s, err = takeSize(s); err != nil {
		return sp, err
	}
	sp.grouping, s = takeByte(s, ",_")
	if strings.HasPrefix(s, ".") {
		before := s
		if sp.precision, s, err = takeSize(s[1:]); err == nil && len(s) == len(before)-1 {
			err = errors.New("format specifier missing precision")
		}
		if err != nil {
			return sp, err
		}
	}
	sp.verb, s = takeByte(s, "bcdeEfFgGnosxX%")
	if s != "" {
		return sp, errors.New("invalid format specifier")
	}
	return sp, nil
}

func takeByte(s, set string) (byte, string) {
	if s != "" && strings.IndexByte(set, s[0]) >= 0 {
		return s[0], s[1:]
	}
	return 0, s
}

func takeSize(s string) (int, string, error) {
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if n == 0 {
		return 0, s, nil
	}
	size, err := strconv.Atoi(s[:n])
	if err != nil {
		return 0, "", errors.New("too many decimal digits in format string")
	}
	return size, s[n:], tooWide(size)
}

// formatValue is Python's format(v, how).
func formatValue(r *run, v Value, how string) (string, error) {
	if how == "" {
		return r.str(v)
	}
	sp, err := parseSpec(how)
	if err != nil {
		return "", err
	}
	if s, ok := text(v); ok {
		return sp.text(r, s)
	}
	n, ok := asNumber(v)
	if !ok {
		return "", fmt.Errorf("unsupported format string passed to %s.__format__", v.typeName())
	}
	if sp.verb == 's' || sp.verb == 'c' || sp.verb == 'n' || sp.verb == 0 && n.isFloat {
		return "", fmt.Errorf("format '%s' of %s is not supported", how, v.typeName())
	}
	if !n.isFloat && strings.IndexByte("\x00bdoxX", sp.verb) >= 0 {
		return sp.integer(r, n.i)
	}
	return sp.float(r, n)
}

func (sp spec) text(r *run, s string) (string, error) {
	if sp.sign != 0 || sp.alternate || sp.grouping != 0 || sp.align == '=' || sp.verb != 0 && sp.verb != 's' {
		return "", errors.New("format specifier not allowed with a string")
	}
	if sp.precision >= 0 {
		s = s[:runeOffset(s, sp.precision)]
	}
	if sp.align == 0 {
		sp.align = '<'
	}
	return sp.pad(r, "", s)
}

func (sp spec) integer(r *run, n *big.Int) (string, error) {
	if sp.precision >= 0 {
		return "", errors.New("precision not allowed in integer format specifier")
	}
	base := map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}[sp.verb]
	group := 4
	if base == 0 {
		base, group = 10, 3
	}
	if sp.grouping == ',' && base != 10 {
		return "", fmt.Errorf("cannot specify ',' with '%c'", sp.verb)
	}
	digits := new(big.Int).Abs(n).Text(base)
	prefix := ""
	if sp.alternate && base != 10 {
		prefix = "0" + string(sp.verb)
	}
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	return sp.number(r, n.Sign() < 0, prefix, sp.grouped(digits, group))
}

func (sp spec) float(r *run, n number) (string, error) {
	f, err := n.float()
	if err != nil {
		return "", err
	}
	if sp.alternate {
		return "", errors.New("format flag # of a float is not supported")
	}
	if sp.precision < 0 {
		sp.precision = 6
	}
	verb, tail := sp.verb, ""
	if verb == '%' {
		f, verb, tail = f*100, 'f', "%"
	}
	digits := formatFloatVerb(math.Abs(f), verb, sp.precision)
	whole := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	digits = sp.grouped(digits[:whole], 3) + digits[whole:] + tail
	return sp.number(r, math.Signbit(f) && !math.IsNaN(f), "", digits)
}

// grouped puts the grouping character between every n digits.
func (sp spec) grouped(digits string, n int) string {
	if sp.grouping == 0 {
		return digits
	}
	var parts []string
	for len(digits) > n {
		parts = append(parts, digits[len(digits)-n:])
		digits = digits[:len(digits)-n]
	}
	return strings.Join(turned(append(parts, digits)), string(sp.grouping))
}

func (sp spec) number(r *run, negative bool, prefix, digits string) (string, error) {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case sp.sign == '+' || sp.sign == ' ':
		sign = string(sp.sign)
	}
	if sp.align == 0 {
		sp.align = '>'
		if sp.zero {
			sp.align = '='
		}
	}
	if sp.grouping != 0 && sp.fill == "0" && sp.align == '=' {
		return "", errors.New("zero padding with a grouping option is not supported")
	}
	return sp.pad(r, sign+prefix, digits)
}

// pad fills to width: before, behind, around, or between head and body.
func (sp spec) pad(r *run, head, body string) (string, error) {
	missing := max(sp.width-runeCount(head)-runeCount(body), 0)
	if err := r.alloc(len(head) + len(body) + missing*len(sp.fill)); err != nil {
		return "", err
	}
	left, middle, right := 0, 0, 0
	switch sp.align {
	case '<':
		right = missing
	case '>':
		left = missing
	case '^':
		left = missing / 2
		right = missing - left
	default:
		middle = missing
	}
	fill := func(n int) string { return strings.Repeat(sp.fill, n) }
	return fill(left) + head + fill(middle) + body + fill(right), nil
}
