// Package ucd is the part of the Unicode character database that tokenizers depend on,
// frozen at the versions their reference implementation uses: classes of code points as
// of Unicode 16.0, normal forms as of Unicode 9.0. Go's own tables follow the toolchain,
// and a token id must not change because the compiler did.
//
// Start with [Class] for a set of code points by name and [NewNormalizer] for a normal form.
package ucd

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed categories.txt
var categories string

// whiteSpace is the property White_Space, what \s means.
var whiteSpace = Ranges{{0x09, 0x0D}, {0x20, 0x20}, {0x85, 0x85}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}}

// han is the script Han.
var han = Ranges{
	{0x2E80, 0x2E99}, {0x2E9B, 0x2EF3}, {0x2F00, 0x2FD5}, {0x3005, 0x3005}, {0x3007, 0x3007}, {0x3021, 0x3029}, {0x3038, 0x303B},
	{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xF900, 0xFA6D}, {0xFA70, 0xFAD9}, {0x16FE2, 0x16FE3}, {0x16FF0, 0x16FF1},
	{0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D}, {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D},
	{0x2F800, 0x2FA1D}, {0x30000, 0x3134A}, {0x31350, 0x323AF},
}

// circled are the symbols with the property Other_Alphabetic: letters in circles and squares.
var circled = Ranges{{0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}}

// Class gives the code points of a general category ("Lu"), of a group of categories ("L"),
// or of one of the names White_Space, Alphabetic and Han.
func Class(name string) (Ranges, error) {
	switch name {
	case "White_Space":
		return slices.Clone(whiteSpace), nil
	case "Han":
		return slices.Clone(han), nil
	case "Alphabetic": // what it is without the marks; see the users
		return Union(category("L"), category("Nl"), circled), nil
	case "Cn":
		return category("").Complement(), nil
	case "C":
		return Union(category("C"), category("").Complement()), nil
	}
	if r := category(name); name != "" && len(r) > 0 {
		return r, nil
	}
	return nil, fmt.Errorf("character class %q is not known", name)
}

// category joins the lines of categories.txt whose category starts with prefix.
func category(prefix string) Ranges {
	var out Ranges
	for line := range strings.Lines(categories) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "#" && strings.HasPrefix(name, prefix) {
			out = append(out, parseRanges(list)...)
		}
	}
	return Union(out)
}

// parseRanges reads "41-5A 61" of our own embedded files.
func parseRanges(list string) Ranges {
	var out Ranges
	for item := range strings.FieldsSeq(list) {
		lo, hi, two := strings.Cut(item, "-")
		if !two {
			hi = lo
		}
		out = append(out, Range{code(lo), code(hi)})
	}
	return out
}

func code(hex string) rune {
	v, err := strconv.ParseUint(hex, 16, 21)
	if err != nil {
		panic(fmt.Sprintf("ucd: embedded table holds %q", hex))
	}
	return rune(v)
}
