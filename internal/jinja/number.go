package jinja

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// number is an operand of arithmetic: an int, or a float when isFloat.
type number struct {
	i       *big.Int
	f       float64
	isFloat bool
}

// asInt returns a bool or an int that fits.
func asInt(v Value) (int64, bool) {
	switch v := v.(type) {
	case integer:
		return int64(v), true
	case boolean:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func asBig(v Value) (*big.Int, bool) {
	if b, ok := v.(*bigInt); ok {
		return b.n, true
	}
	i, ok := asInt(v)
	return big.NewInt(i), ok
}

func asNumber(v Value) (number, bool) {
	if f, ok := v.(float); ok {
		return number{f: float64(f), isFloat: true}, true
	}
	i, ok := asBig(v)
	return number{i: i}, ok
}

func (n number) float() (float64, error) {
	if n.isFloat {
		return n.f, nil
	}
	f, _ := new(big.Float).SetInt(n.i).Float64()
	if math.IsInf(f, 0) {
		return 0, errors.New("int too large to convert to float")
	}
	return f, nil
}

// makeInt brings an int back to its smallest form.
func makeInt(n *big.Int) (Value, error) {
	if n.IsInt64() {
		return integer(n.Int64()), nil
	}
	if n.BitLen() > maxIntBits {
		return nil, fmt.Errorf("int of %d bits is over the limit of %d", n.BitLen(), maxIntBits)
	}
	return &bigInt{n}, nil
}

func floatToBig(f float64) *big.Int {
	n, _ := big.NewFloat(f).Int(nil)
	return n
}

var errZero = errors.New("division by zero")

// arithmetic computes a op b for numbers; op is one of + - * / // % **.
func arithmetic(op string, a, b number) (Value, error) {
	if !a.isFloat && !b.isFloat && op != "/" {
		return intArithmetic(op, a.i, b.i)
	}
	if !a.isFloat && !b.isFloat {
		return divideInts(a.i, b.i)
	}
	x, err := a.float()
	if err != nil {
		return nil, err
	}
	y, err := b.float()
	if err != nil {
		return nil, err
	}
	return floatArithmetic(op, x, y)
}

func intArithmetic(op string, a, b *big.Int) (Value, error) {
	n := new(big.Int)
	switch op {
	case "+":
		n.Add(a, b)
	case "-":
		n.Sub(a, b)
	case "*":
		n.Mul(a, b)
	case "**":
		return powInts(a, b)
	default:
		if b.Sign() == 0 {
			return nil, errZero
		}
		floorDivMod(op, n, a, b)
	}
	return makeInt(n)
}

// floorDivMod rounds the quotient down, as Python does and big.Int does not.
func floorDivMod(op string, n, a, b *big.Int) {
	quotient, rest := new(big.Int), new(big.Int)
	quotient.QuoRem(a, b, rest)
	if rest.Sign() != 0 && rest.Sign() != b.Sign() {
		quotient.Sub(quotient, big.NewInt(1))
		rest.Add(rest, b)
	}
	if op == "//" {
		n.Set(quotient)
	} else {
		n.Set(rest)
	}
}

func divideInts(a, b *big.Int) (Value, error) {
	if b.Sign() == 0 {
		return nil, errZero
	}
	f, _ := new(big.Rat).SetFrac(a, b).Float64()
	if math.IsInf(f, 0) {
		return nil, errors.New("integer division result too large for a float")
	}
	if f == 0 && a.Sign() == 0 && b.Sign() < 0 {
		f = math.Copysign(0, -1)
	}
	return float(f), nil
}

func powInts(a, b *big.Int) (Value, error) {
	if b.Sign() < 0 {
		if a.Sign() == 0 {
			return nil, errors.New("0.0 cannot be raised to a negative power")
		}
		x, err := number{i: a}.float()
		if err != nil {
			return nil, err
		}
		y, err := number{i: b}.float()
		if err != nil {
			return nil, err
		}
		return floatArithmetic("**", x, y)
	}
	if a.BitLen() > 1 && (!b.IsInt64() || b.Int64() > maxIntBits || int64(a.BitLen()-1)*b.Int64() > maxIntBits) {
		return nil, fmt.Errorf("int power is over the limit of %d bits", maxIntBits)
	}
	return makeInt(new(big.Int).Exp(a, b, nil))
}

func floatArithmetic(op string, x, y float64) (Value, error) {
	switch op {
	case "+":
		return float(x + y), nil
	case "-":
		return float(x - y), nil
	case "*":
		return float(x * y), nil
	case "**":
		return powFloats(x, y)
	}
	if y == 0 {
		return nil, errZero
	}
	switch op {
	case "/":
		return float(x / y), nil
	case "//":
		quotient, _ := floatDivMod(x, y)
		return float(quotient), nil
	}
	_, rest := floatDivMod(x, y)
	return float(rest), nil
}

// floatDivMod is CPython's float_divmod, signs of zero included.
func floatDivMod(x, y float64) (quotient, rest float64) {
	rest = math.Mod(x, y)
	quotient = (x - rest) / y
	if rest == 0 {
		rest = math.Copysign(0, y)
	} else if (y < 0) != (rest < 0) {
		rest += y
		quotient--
	}
	if quotient == 0 {
		return math.Copysign(0, x/y), rest
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, rest
}

func powFloats(x, y float64) (Value, error) {
	if x == 0 && y < 0 {
		return nil, errors.New("0.0 cannot be raised to a negative power")
	}
	if x < 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) && y != math.Trunc(y) {
		return nil, errors.New("complex numbers are not supported")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, errors.New("numerical result out of range")
	}
	return float(f), nil
}

// compareNumbers orders exactly, without rounding an int to a float; ordered is false for NaN.
func compareNumbers(a, b number) (sign int, ordered bool) {
	switch {
	case !a.isFloat && !b.isFloat:
		return a.i.Cmp(b.i), true
	case a.isFloat && math.IsNaN(a.f), b.isFloat && math.IsNaN(b.f):
		return 0, false
	}
	return a.exact().Cmp(b.exact()), true
}

func (n number) exact() *big.Float {
	if n.isFloat {
		return big.NewFloat(n.f)
	}
	return new(big.Float).SetInt(n.i)
}

// negate is unary minus.
func negate(v Value) (Value, error) {
	if f, ok := v.(float); ok {
		return -f, nil
	}
	if n, ok := asBig(v); ok {
		return makeInt(new(big.Int).Neg(n))
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.err()
	}
	return nil, fmt.Errorf("bad operand type for unary -: '%s'", v.typeName())
}

// plus is unary plus.
func plus(v Value) (Value, error) {
	if f, ok := v.(float); ok {
		return f, nil
	}
	if n, ok := asBig(v); ok {
		return makeInt(n)
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.err()
	}
	return nil, fmt.Errorf("bad operand type for unary +: '%s'", v.typeName())
}
