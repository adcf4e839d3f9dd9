package grammar

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The digits of a number without bounds: what a float64 and an int64 hold, and no endless row of them.
const (
	maxWhole    = 15
	maxInteger  = 18
	maxFraction = 15
	maxExponent = 2
)

func (p *pool) digits(min, max int32) expr { return p.repeat(p.bytes(span('0', '9')), min, max) }

// natural is 0, or up to n digits without a leading 0.
func (p *pool) natural(n int32) expr {
	return p.alt(p.literal("0"), p.then(p.bytes(span('1', '9')), p.digits(0, n-1)))
}

// number is any number of JSON of sensible length.
func (p *pool) number() expr {
	exponent := p.seq(p.bytes(span('e', 'e').or(span('E', 'E'))), p.optional(p.bytes(span('+', '+').or(span('-', '-')))), p.digits(1, maxExponent))
	return p.seq(p.optional(p.literal("-")), p.natural(maxWhole), p.optional(p.fraction()), p.optional(exponent))
}

func (p *pool) fraction() expr { return p.then(p.literal("."), p.digits(1, maxFraction)) }

// above0 is a fraction with a digit that is not 0.
func (p *pool) above0() expr {
	return p.seq(p.literal("."), p.repeat(p.literal("0"), 0, maxFraction-1), p.bytes(span('1', '9')), p.digits(0, maxFraction-1))
}

// zeros is a fraction that is 0.
func (p *pool) zeros() expr { return p.then(p.literal("."), p.repeat(p.literal("0"), 1, maxFraction)) }

// integer is any whole number of sensible length.
func (p *pool) integer() expr {
	return p.then(p.optional(p.literal("-")), p.natural(maxInteger))
}

// bounds are whole numbers; open ends are not part of the range.
type bounds struct {
	lo, hi         int64
	openLo, openHi bool
}

// maxBound is the largest magnitude of a bound: every whole number up to it is a float64.
const maxBound = 1 << 53

// readBounds takes the four keywords of a schema; none is not ok.
func readBounds(o object) (b bounds, ok bool, err error) {
	b = bounds{lo: -maxBound, hi: maxBound}
	for _, k := range []struct {
		name string
		at   *int64
		open *bool
		excl bool
	}{
		{"minimum", &b.lo, &b.openLo, false}, {"exclusiveMinimum", &b.lo, &b.openLo, true},
		{"maximum", &b.hi, &b.openHi, false}, {"exclusiveMaximum", &b.hi, &b.openHi, true},
	} {
		raw, has := o.values[k.name]
		if !has {
			continue
		}
		v, err := wholeNumber(raw)
		if err != nil {
			return b, false, fmt.Errorf("%s %w", k.name, err)
		}
		tighter := v > *k.at && k.at == &b.lo || v < *k.at && k.at == &b.hi
		if tighter || v == *k.at && k.excl {
			*k.at, *k.open = v, k.excl
		}
		ok = true
	}
	return b, ok, nil
}

func wholeNumber(raw json.RawMessage) (int64, error) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxBound {
		return 0, fmt.Errorf("is %s, want a whole number up to %d", clip(raw), int64(maxBound))
	}
	return int64(f), nil
}

// integerIn is a whole number in b.
func (p *pool) integerIn(b bounds) expr {
	if b.openLo {
		b.lo++
	}
	if b.openHi {
		b.hi--
	}
	positive := p.naturalIn(max(b.lo, 0), b.hi)
	negative := p.then(p.literal("-"), p.naturalIn(max(-b.hi, 1), -b.lo))
	return p.alt(positive, negative)
}

// numberIn is a number in b, without exponent.
func (p *pool) numberIn(b bounds) expr {
	positive, negative := never, never
	if b.hi >= 0 {
		up := b
		if b.lo < 0 {
			up.lo, up.openLo = 0, false
		}
		positive = p.positiveIn(up)
	}
	if b.lo < 0 {
		down := bounds{lo: -b.hi, hi: -b.lo, openLo: b.openHi, openHi: b.openLo}
		if b.hi >= 0 {
			down.lo, down.openLo = 0, true
		}
		negative = p.then(p.literal("-"), p.positiveIn(down))
	}
	return p.alt(positive, negative)
}

// positiveIn is a number in b, which begins at 0 or above.
func (p *pool) positiveIn(b bounds) expr {
	low := p.literal(strconv.FormatInt(b.lo, 10))
	high := p.then(p.literal(strconv.FormatInt(b.hi, 10)), p.optional(p.zeros()))
	if b.lo == b.hi {
		if b.openLo || b.openHi {
			return never
		}
		return high
	}
	if b.lo > b.hi {
		return never
	}
	first := p.then(low, p.optional(p.fraction()))
	if b.openLo {
		first = p.then(low, p.above0())
	}
	inside := p.then(p.naturalIn(b.lo+1, b.hi-1), p.optional(p.fraction()))
	if b.openHi {
		return p.alt(first, inside)
	}
	return p.alt(first, inside, high)
}

// naturalIn is a whole number from lo to hi, both 0 or above: for each count of digits the part of the range that
// has it.
func (p *pool) naturalIn(lo, hi int64) expr {
	all := never
	for least, n := int64(0), 1; least <= hi && n <= maxInteger; n++ {
		most := int64(math.Pow10(n)) - 1
		if from, to := max(lo, least), min(hi, most); from <= to {
			all = p.alt(all, p.between(pad(from, n), pad(to, n)))
		}
		least = most + 1
	}
	return all
}

func pad(v int64, n int) string { return fmt.Sprintf("%0*d", n, v) }

// between is the texts of digits from lo to hi, of one length.
func (p *pool) between(lo, hi string) expr {
	if lo == "" {
		return nothing
	}
	n := len(lo) - 1
	if lo[1:] == strings.Repeat("0", n) && hi[1:] == strings.Repeat("9", n) {
		return p.then(p.bytes(span(lo[0], hi[0])), p.digits(int32(n), int32(n)))
	}
	if lo[0] == hi[0] {
		return p.then(p.literal(lo[:1]), p.between(lo[1:], hi[1:]))
	}
	all := p.alt(
		p.then(p.literal(lo[:1]), p.between(lo[1:], strings.Repeat("9", n))),
		p.then(p.literal(hi[:1]), p.between(strings.Repeat("0", n), hi[1:])))
	if lo[0]+1 < hi[0] {
		all = p.alt(all, p.then(p.bytes(span(lo[0]+1, hi[0]-1)), p.digits(int32(n), int32(n))))
	}
	return all
}
