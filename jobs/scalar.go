package jobs

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// readText is the text of a scalar that is text, quoted or plain.
func (d *decoder) readText(v value) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	d.bad(v, "is %s, want text%s", kind(v.node), quoteHint(v.node))
	return "", false
}

func quoteHint(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return `; put it in "quotes"`
	}
	return ""
}

func (d *decoder) text(into *string) func(value) {
	return func(v value) {
		if s, ok := d.readText(v); ok {
			*into = s
		}
	}
}

// filled is text that may not be empty.
func (d *decoder) filled(into *string) func(value) {
	return func(v value) {
		if s, ok := d.readText(v); ok && s == "" {
			d.bad(v, "is empty text")
		} else if ok {
			*into = s
		}
	}
}

func (d *decoder) oneOf(into *string, choices ...string) func(value) {
	return func(v value) {
		s, ok := d.readText(v)
		if ok && !slices.Contains(choices, s) {
			d.bad(v, "is %q, want one of %s", s, strings.Join(choices, ", "))
		} else if ok {
			*into = s
		}
	}
}

func (d *decoder) boolean(into *bool) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.BoolNode)
		if !ok {
			d.bad(v, "is %s, want true or false", kind(v.node))
			return
		}
		*into = n.Value
	}
}

// texts reads a list of text, or one text as a list of one.
func (d *decoder) texts(into *[]string) func(value) {
	return func(v value) {
		out := []string{}
		add := func(v value) {
			if s, ok := d.readText(v); ok {
				out = append(out, s)
			}
		}
		if _, one := v.node.(*ast.SequenceNode); one {
			d.list(v, add)
		} else {
			add(v)
		}
		*into = out
	}
}

// plain is the text of a scalar that is not quoted, as the file has it.
func (d *decoder) plain(v value, want string) (string, bool) {
	t := v.node.GetToken()
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return t.Value, true
	case *ast.StringNode:
		if t.Type == token.StringType {
			return t.Value, true
		}
	}
	d.bad(v, "is %s, want %s", kind(v.node), want)
	return "", false
}

// integer reads digits. YAML's other notations (010, 0x10, 1_000) mean different numbers
// to different readers and are refused.
func (d *decoder) integer(low, high int64, set func(int64)) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a whole number")
		if !ok {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text {
			d.bad(v, "is %s, want a whole number in digits", text)
		} else if n < low || n > high {
			d.bad(v, "is %d, want %d to %d", n, low, high)
		} else {
			set(n)
		}
	}
}

func (d *decoder) count(into *int, low, high int) func(value) {
	return d.integer(int64(low), int64(high), func(n int64) { *into = int(n) })
}

// auto reads a whole number, or "auto" as 0.
func (d *decoder) auto(into *int, high int) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.StringNode); ok && n.Value == Auto {
			*into = 0
			return
		}
		d.count(into, 1, high)(v)
	}
}

func (d *decoder) seed(into *uint64) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a whole number")
		if !ok {
			return
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != text {
			d.bad(v, "is %s, want 0 to %d in digits", text, uint64(math.MaxUint64))
			return
		}
		*into = n
	}
}

func (d *decoder) number(into *float32) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a number")
		if !ok {
			return
		}
		f, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xX_") {
			d.bad(v, "is %s, want a number", text)
			return
		}
		*into = float32(f)
	}
}

func (d *decoder) size(low int64, set func(int64)) func(value) {
	return func(v value) {
		text, ok := d.plain(v, "a size such as 16MiB")
		if !ok {
			return
		}
		n, err := parseSize(text)
		if err != nil {
			d.bad(v, "%v", err)
		} else if n < low {
			d.bad(v, "is %d bytes, want %d or more", n, low)
		} else {
			set(n)
		}
	}
}

// amount reads a share ("70%") or what count reads.
func (d *decoder) amount(into *Amount, count func(value)) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.StringNode)
		if !ok || !strings.HasSuffix(n.Value, "%") {
			count(v)
			return
		}
		p, err := parsePercent(n.Value)
		if err != nil {
			d.bad(v, "%v", err)
			return
		}
		*into = Amount{Percent: p}
	}
}
