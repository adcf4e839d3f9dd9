package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Drafter is what guesses the next tokens of a reply. Every guess is verified, so none of
// this can change a row: it is no part of the digest.
type Drafter struct {
	Path    Path    // "builtin:NAME", the folder of a checkpoint, or empty: no drafter
	Bits    int     // of its matrices: 0 as released, or 8
	Guesses Guesses // how many a row gets in a round
	Copy    bool    // guess too that a row repeats its own text, which needs no drafter
}

// Guesses is how many tokens are guessed for a row in a round: none, up to so many each
// time, or DraftAuto.
type Guesses int

// DraftAuto guesses as far as it pays, by measurement; DraftOff does not.
const (
	DraftAuto Guesses = -1
	DraftOff  Guesses = 0
)

// maxGuesses is how many the engine can verify for a row at once.
const maxGuesses = 31

// The words of drafter.precision.
const (
	precisionCheckpoint = "checkpoint" // as released
	precisionQ8         = "q8"         // 8 bits, encoded at load
)

const fixedPrefix = "fixed:"

// ParseGuesses reads "auto", "off" or "fixed:N".
func ParseGuesses(text string) (Guesses, error) {
	switch text {
	case Auto:
		return DraftAuto, nil
	case "off":
		return DraftOff, nil
	}
	digits, ok := strings.CutPrefix(text, fixedPrefix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > maxGuesses || strconv.Itoa(n) != digits {
		return 0, fmt.Errorf("is %q, want auto, off or fixed:1 to fixed:%d", text, maxGuesses)
	}
	return Guesses(n), nil
}

// String is what ParseGuesses reads.
func (g Guesses) String() string {
	switch g {
	case DraftAuto:
		return Auto
	case DraftOff:
		return "off"
	}
	return fixedPrefix + strconv.Itoa(int(g))
}

// MarshalText writes String.
func (g Guesses) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// drafter reads a path alone, or a mapping.
func (d *decoder) drafter(into *Drafter) func(value) {
	path := d.path(&into.Path, BuiltinPrefix+"NAME or the folder of a drafter", BuiltinPrefix)
	return func(v value) {
		switch v.node.(type) {
		case *ast.StringNode, *ast.LiteralNode:
			path(v)
		default:
			d.mapping(v, fields{
				"path": path, "precision": d.precision(&into.Bits), "mode": d.guesses(&into.Guesses), "copy": d.onOff(&into.Copy),
			})
		}
	}
}

func (d *decoder) precision(bits *int) func(value) {
	return func(v value) {
		var word string
		d.oneOf(&word, precisionCheckpoint, precisionQ8)(v)
		*bits = 0
		if word == precisionQ8 {
			*bits = 8
		}
	}
}

func (d *decoder) guesses(into *Guesses) func(value) {
	return func(v value) {
		text, ok := d.readText(v)
		if !ok {
			return
		}
		n, err := ParseGuesses(text)
		if err != nil {
			d.bad(v, "%v", err)
			return
		}
		*into = n
	}
}

func (d *decoder) onOff(into *bool) func(value) {
	return func(v value) {
		var word string
		d.oneOf(&word, "on", "off")(v)
		*into = word == "on"
	}
}

// audit reads a share alone, or a mapping.
func (d *decoder) audit(percent *float64) func(value) {
	share := func(v value) {
		text, ok := d.readText(v)
		if !ok {
			return
		}
		p, err := parsePercent(text)
		if err != nil {
			d.bad(v, "%v", err)
			return
		}
		*percent = p
	}
	return func(v value) {
		switch v.node.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			var word string
			d.mapping(v, fields{"sample": share, "on_mismatch": d.oneOf(&word, "stop")})
		default:
			share(v)
		}
	}
}
