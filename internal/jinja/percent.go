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

// percent is one % formatting of a string, as CPython's PyUnicode_Format runs it.
type percent struct {
	r      *run
	out    buffer
	format string
	args   []Value // what is still to be used
	bag    Value   // args, when they came as one value that can be subscripted
}

// directive is %[(key)][flags][width][.precision]verb.
type directive struct {
	flags     string
	width     int
	precision int // -1 when not given
	verb      byte
}

// formatPercent is format % args.
func formatPercent(r *run, self Value, format string, args Value) (Value, error) {
	if _, ok := self.(markup); ok {
		return nil, errors.New("% formatting of a Markup is not supported")
	}
	p := &percent{r: r, format: format}
	switch args := args.(type) {
	case *tuple:
		p.args = args.items
	case *Map, *list, *rangeValue, *undefined:
		p.args, p.bag = []Value{args}, args
	default:
		p.args = []Value{args}
	}
	for {
		i := strings.IndexByte(p.format, '%')
		if i < 0 {
			break
		}
		if err := p.out.write(r, p.format[:i]); err != nil {
			return nil, err
		}
		p.format = p.format[i+1:]
		if err := p.one(); err != nil {
			return nil, err
		}
	}
	if len(p.args) > 0 && p.bag == nil {
		return nil, errors.New("not all arguments converted during string formatting")
	}
	if err := p.out.write(r, p.format); err != nil {
		return nil, err
	}
	return str(p.out.String()), nil
}

func (p *percent) one() error {
	if strings.HasPrefix(p.format, "%") {
		p.format = p.format[1:]
		return p.out.write(p.r, "%")
	}
	if err := p.key(); err != nil {
		return err
	}
	d := directive{precision: -1}
	n := len(p.format) - len(strings.TrimLeft(p.format, "-+ #0"))
	d.flags, p.format = p.format[:n], p.format[n:]
	var err error
	if d.width, err = p.size(0); err != nil {
		return err
	}
	if d.width < 0 {
		d.flags, d.width = d.flags+"-", -d.width
	}
	if strings.HasPrefix(p.format, ".") {
		p.format = p.format[1:]
		if d.precision, err = p.size(0); err != nil {
			return err
		}
		d.precision = max(d.precision, 0)
	}
	p.format = strings.TrimLeft(p.format, "hlL")
	if p.format == "" {
		return errors.New("incomplete format")
	}
	d.verb, p.format = p.format[0], p.format[1:]
	if d.verb == '%' {
		return p.out.write(p.r, "%")
	}
	v, err := p.arg()
	if err != nil {
		return err
	}
	return p.convert(d, v)
}

// key takes (name), after which the value of that name is the only argument.
func (p *percent) key() error {
	if !strings.HasPrefix(p.format, "(") {
		return nil
	}
	m, ok := p.bag.(*Map)
	if !ok {
		return errors.New("format requires a mapping")
	}
	depth := 0
	for i := range len(p.format) {
		switch p.format[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth > 0 {
			continue
		}
		name := p.format[1:i]
		v, ok := m.Get(name)
		if !ok {
			return fmt.Errorf("key %s is not in the mapping", shortRepr(str(name)))
		}
		p.args, p.format = []Value{v}, p.format[i+1:]
		return nil
	}
	return errors.New("incomplete format key")
}

// size takes a width or precision, which may be * and then comes from the arguments.
func (p *percent) size(none int) (int, error) {
	if strings.HasPrefix(p.format, "*") {
		p.format = p.format[1:]
		v, err := p.arg()
		if err != nil {
			return 0, err
		}
		n, err := wantInt(v)
		return n, errors.Join(err, tooWide(n))
	}
	n := len(p.format) - len(strings.TrimLeft(p.format, "0123456789"))
	if n == 0 {
		return none, nil
	}
	size, err := strconv.Atoi(p.format[:n])
	p.format = p.format[n:]
	if err != nil {
		return 0, errors.New("width too big")
	}
	return size, tooWide(size)
}

func tooWide(n int) error {
	if n > maxFormat || n < -maxFormat {
		return fmt.Errorf("width or precision %d is over the limit of %d", n, maxFormat)
	}
	return nil
}

func (p *percent) arg() (Value, error) {
	if len(p.args) == 0 {
		return nil, errors.New("not enough arguments for format string")
	}
	v := p.args[0]
	p.args = p.args[1:]
	return v, nil
}

func (p *percent) convert(d directive, v Value) error {
	var s string
	var err error
	switch d.verb {
	case 's', 'r':
		s, err = p.text(d, v)
	case 'c':
		s, err = formatChar(v)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		s, err = d.integer(v)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		s, err = d.float(v)
	default:
		c, _ := utf8.DecodeRuneInString(string(d.verb) + p.format)
		err = fmt.Errorf("unsupported format character %q", c)
	}
	if err != nil {
		return err
	}
	side := padLeft
	if strings.Contains(d.flags, "-") {
		side = padRight
	}
	if s, err = pad(p.r, s, d.width, " ", side); err != nil {
		return err
	}
	return p.out.write(p.r, s)
}

func (p *percent) text(d directive, v Value) (s string, err error) {
	if d.verb == 'r' {
		s, err = p.r.repr(v)
	} else {
		s, err = p.r.str(v)
	}
	if d.precision >= 0 {
		s = s[:runeOffset(s, d.precision)]
	}
	return s, err
}

func formatChar(v Value) (string, error) {
	if s, ok := text(v); ok {
		if runeCount(s) != 1 {
			return "", errors.New("%c requires int or char")
		}
		return s, nil
	}
	n, ok := asInt(v)
	if !ok {
		return "", errors.New("%c requires int or char")
	}
	if n < 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return "", fmt.Errorf("%%c of %d is no character", n)
	}
	return string(rune(n)), nil
}

func (d directive) integer(v Value) (string, error) {
	n, ok := asBig(v)
	if f, isFloat := v.(float); isFloat && strings.IndexByte("diu", d.verb) >= 0 {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return "", errors.New("cannot convert float NaN or infinity to integer")
		}
		n, ok = floatToBig(float64(f)), true
	}
	if !ok {
		return "", fmt.Errorf("%%%c format: a number is required, not %s", d.verb, v.typeName())
	}
	base := map[byte]int{'o': 8, 'x': 16, 'X': 16}[d.verb]
	if base == 0 {
		base = 10
	}
	digits := new(big.Int).Abs(n).Text(base)
	digits = strings.Repeat("0", max(d.precision-len(digits), 0)) + digits
	prefix := ""
	if strings.Contains(d.flags, "#") && base != 10 {
		prefix = "0" + string(d.verb)
	}
	if d.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	return d.signed(n.Sign() < 0, prefix, digits), nil
}

// signed puts sign, prefix and zeros in front of digits.
func (d directive) signed(negative bool, prefix, digits string) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case strings.Contains(d.flags, "+"):
		sign = "+"
	case strings.Contains(d.flags, " "):
		sign = " "
	}
	sign += prefix
	if strings.Contains(d.flags, "0") && !strings.Contains(d.flags, "-") {
		digits = strings.Repeat("0", max(d.width-len(sign)-len(digits), 0)) + digits
	}
	return sign + digits
}

func (d directive) float(v Value) (string, error) {
	n, ok := asNumber(v)
	if u, isUndefined := v.(*undefined); isUndefined {
		return "", u.err()
	}
	if !ok {
		return "", fmt.Errorf("must be real number, not %s", v.typeName())
	}
	f, err := n.float()
	if err != nil {
		return "", err
	}
	if strings.Contains(d.flags, "#") {
		return "", errors.New("flag # of a float is not supported")
	}
	if d.precision < 0 {
		d.precision = 6
	}
	return d.signed(math.Signbit(f) && !math.IsNaN(f), "", formatFloatVerb(math.Abs(f), d.verb, d.precision)), nil
}

// formatFloatVerb is C's printf of a float that is not negative.
func formatFloatVerb(f float64, verb byte, precision int) string {
	lower := verb | 0x20
	var s string
	switch {
	case math.IsNaN(f):
		s = "nan"
	case math.IsInf(f, 0):
		s = "inf"
	default:
		if lower == 'g' {
			precision = max(precision, 1)
		}
		s = strconv.FormatFloat(f, lower, precision, 64)
	}
	if verb != lower {
		s = strings.ToUpper(s)
	}
	return s
}
