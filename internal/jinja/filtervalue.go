package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// valueFilters are the filters on one value of any kind.
func valueFilters() []*function {
	value := need("value")
	def := &function{name: "default", params: []param{value, opt("default_value", str("")), opt("boolean", boolean(false))}, body: defaultFilter}
	length := &function{name: "length", params: []param{value}, posOnly: 1, body: lengthFilter}
	return []*function{
		def,
		alias("d", def),
		length,
		alias("count", length),
		{name: "int", params: []param{value, opt("default", integer(0)), opt("base", integer(10))}, body: intFilter},
		{name: "float", params: []param{value, opt("default", float(0))}, body: floatFilter},
		{name: "abs", params: []param{value}, posOnly: 1, body: absFilter},
		{name: "round", params: []param{value, opt("precision", integer(0)), opt("method", str("common"))}, body: roundFilter},
		{name: "attr", params: []param{need("obj"), need("name")}, body: attrFilter},
		{name: "tojson", params: []param{need("x"), opt("ensure_ascii", boolean(false)), opt("indent", none{}), opt("separators", none{}), opt("sort_keys", boolean(false))}, body: toJSON},
	}
}

func defaultFilter(_ *run, a []Value) (Value, error) {
	if _, ok := a[0].(*undefined); ok || truth(a[2]) && !truth(a[0]) {
		return a[1], nil
	}
	return a[0], nil
}

func lengthFilter(r *run, a []Value) (Value, error) {
	n, err := pyLen(r, a[0])
	return integer(n), err
}

// pyLen is Python's len().
func pyLen(r *run, v Value) (int, error) {
	if l, ok := v.(*loop); ok {
		return l.length(r)
	}
	n, ok := length(v)
	if !ok {
		return 0, fmt.Errorf("object of type '%s' has no len()", v.typeName())
	}
	if s, isText := text(v); isText {
		return n, r.scan(len(s))
	}
	return n, nil
}

// intFilter is Python's int(), and where that has no answer int(float()), and then the default.
func intFilter(r *run, a []Value) (Value, error) {
	if s, ok := text(a[0]); ok {
		if err := r.scan(len(s)); err != nil {
			return nil, err
		}
		base, err := wantInt(a[2])
		if err == nil && (base == 0 || base >= 2 && base <= 36) {
			if n, ok := parseInt(s, base); ok {
				return makeInt(n)
			}
		}
		if f, ok := parseFloat(s); ok {
			return truncateFloat(f, a[1])
		}
		return a[1], nil
	}
	switch v := a[0].(type) {
	case *undefined:
		return nil, v.err()
	case float:
		if math.IsInf(float64(v), 0) {
			return nil, errors.New("cannot convert float infinity to integer")
		}
		return truncateFloat(float64(v), a[1])
	}
	if n, ok := asBig(a[0]); ok {
		return makeInt(n)
	}
	return a[1], nil
}

func truncateFloat(f float64, def Value) (Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return def, nil
	}
	return makeInt(floatToBig(f))
}

// parseInt is int(s, base) of Python.
func parseInt(s string, base int) (*big.Int, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || len(digits) > maxIntBits/3 {
		return nil, false
	}
	digits, base, ok := basePrefix(digits, base)
	if !ok || !underscoresFit(digits) {
		return nil, false
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if ok && s[0] == '-' {
		n.Neg(n)
	}
	return n, ok && digits[0] != '+' && digits[0] != '-'
}

// basePrefix takes 0x, 0o or 0b off where base allows or asks for it.
func basePrefix(digits string, base int) (string, int, bool) {
	if len(digits) > 1 && digits[0] == '0' {
		prefix := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]|0x20]
		if prefix != 0 && (base == 0 || base == prefix) {
			return strings.TrimPrefix(digits[2:], "_"), prefix, true
		}
		if base == 0 && strings.Trim(digits, "0_") != "" {
			return "", 0, false
		}
	}
	if base == 0 {
		base = 10
	}
	return digits, base, true
}

// underscoresFit reports digits with only single underscores, and those between digits.
func underscoresFit(digits string) bool {
	return digits != "" && !strings.HasPrefix(digits, "_") && !strings.HasSuffix(digits, "_") && !strings.Contains(digits, "__")
}

// parseFloat is float(s) of Python.
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	low := strings.ToLower(strings.TrimLeft(s, "+-"))
	if low == "" || len(s)-len(low) > 1 {
		return 0, false
	}
	if low == "nan" {
		return math.NaN(), true
	}
	if low[0] != 'i' && low[0] != 'n' && strings.Trim(low, "0123456789._e+-") != "" {
		return 0, false // Go also reads hexadecimal
	}
	for i := range s {
		if s[i] == '_' && (i == 0 || i+1 == len(s) || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

// asciiDigits writes the decimal digits of every script as 0 to 9.
func asciiDigits(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		for _, r := range unicode.Nd.R16 {
			if c >= rune(r.Lo) && c <= rune(r.Hi) {
				return '0' + (c-rune(r.Lo))%10
			}
		}
		for _, r := range unicode.Nd.R32 {
			if c >= rune(r.Lo) && c <= rune(r.Hi) {
				return '0' + (c-rune(r.Lo))%10
			}
		}
		return c
	}, s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func floatFilter(r *run, a []Value) (Value, error) {
	if s, ok := text(a[0]); ok {
		if err := r.scan(len(s)); err != nil {
			return nil, err
		}
		if f, ok := parseFloat(s); ok {
			return float(f), nil
		}
		return a[1], nil
	}
	if u, ok := a[0].(*undefined); ok {
		return nil, u.err()
	}
	if n, ok := asNumber(a[0]); ok {
		f, err := n.float()
		return float(f), err
	}
	return a[1], nil
}

func absFilter(_ *run, a []Value) (Value, error) {
	if f, ok := a[0].(float); ok {
		return float(math.Abs(float64(f))), nil
	}
	if n, ok := asBig(a[0]); ok {
		return makeInt(new(big.Int).Abs(n))
	}
	return nil, fmt.Errorf("bad operand type for abs(): '%s'", a[0].typeName())
}

func roundFilter(_ *run, a []Value) (Value, error) {
	method, _ := text(a[2])
	if method != "common" && method != "ceil" && method != "floor" {
		return nil, errors.New("method must be common, ceil or floor")
	}
	n, isNumber := asNumber(a[0])
	if u, ok := a[0].(*undefined); ok && method != "common" {
		return nil, u.err()
	}
	if !isNumber {
		return nil, fmt.Errorf("type %s doesn't define __round__ method", a[0].typeName())
	}
	if method != "common" {
		return roundTo(n, a[1], method)
	}
	if _, isNone := a[1].(none); isNone {
		return roundHalf(n, 0, false)
	}
	precision, err := wantInt(a[1])
	if err != nil {
		return nil, err
	}
	return roundHalf(n, precision, true)
}

// roundTo is ceil or floor of value * 10**precision, over 10**precision.
func roundTo(n number, precision Value, method string) (Value, error) {
	p, ok := asNumber(precision)
	if !ok {
		return nil, badOperands("** or pow()", integer(10), precision)
	}
	scale, err := arithmetic("**", number{i: big.NewInt(10)}, p)
	if err != nil {
		return nil, err
	}
	s, _ := asNumber(scale)
	scaled, err := arithmetic("*", n, s)
	if err != nil {
		return nil, err
	}
	if f, ok := scaled.(float); ok {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return nil, errors.New("cannot convert float NaN or infinity to integer")
		}
		to := math.Floor
		if method == "ceil" {
			to = math.Ceil
		}
		if scaled, err = makeInt(floatToBig(to(float64(f)))); err != nil {
			return nil, err
		}
	}
	whole, _ := asNumber(scaled)
	return arithmetic("/", whole, s)
}

// roundHalf is Python's round(): half to even of the exact binary value. An int stays one; a
// float becomes one when no precision was given.
func roundHalf(n number, precision int, keepFloat bool) (Value, error) {
	if n.isFloat && (math.IsNaN(n.f) || math.IsInf(n.f, 0)) {
		if keepFloat {
			return float(n.f), nil
		}
		return nil, errors.New("cannot convert float NaN or infinity to integer")
	}
	if n.isFloat && precision >= 0 {
		if precision > 400 {
			return float(n.f), nil // a float has no more than 1074 digits, none of which round
		}
		f, err := strconv.ParseFloat(strconv.FormatFloat(n.f, 'f', precision, 64), 64)
		if err != nil {
			return nil, errors.New("rounded value too large to represent")
		}
		if !keepFloat {
			return makeInt(floatToBig(f))
		}
		return float(f), nil
	}
	if !n.isFloat && precision >= 0 {
		return makeInt(n.i)
	}
	return roundTens(n, min(-precision, 400)) // no float reaches 1e400
}

// roundTens rounds to a multiple of 10**places.
func roundTens(n number, places int) (Value, error) {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	exact := new(big.Rat)
	if n.isFloat {
		exact.SetFloat64(n.f)
	} else {
		exact.SetInt(n.i)
	}
	exact.Quo(exact, new(big.Rat).SetInt(unit))
	whole := halfEven(exact)
	whole.Mul(whole, unit)
	if !n.isFloat {
		return makeInt(whole)
	}
	f, _ := new(big.Float).SetInt(whole).Float64()
	if math.IsInf(f, 0) {
		return nil, errors.New("rounded value too large to represent")
	}
	return float(math.Copysign(f, n.f)), nil
}

func halfEven(x *big.Rat) *big.Int {
	two := big.NewInt(2)
	floor, rest := new(big.Int).DivMod(x.Num(), x.Denom(), new(big.Int))
	switch rest.Mul(rest, two).Cmp(x.Denom()) {
	case 1:
		floor.Add(floor, big.NewInt(1))
	case 0:
		floor.Add(floor, new(big.Int).Mod(floor, two))
	}
	return floor
}

// attrFilter is obj|attr(name): the attribute alone, never the item.
func attrFilter(r *run, a []Value) (Value, error) {
	if u, ok := a[0].(*undefined); ok {
		return nil, u.err()
	}
	name, err := wantText(a[1])
	if err != nil {
		return nil, err
	}
	v, ok, err := attribute(r, a[0], name)
	if !ok && err == nil {
		v = &undefined{obj: a[0], name: a[1]}
	}
	return v, err
}
