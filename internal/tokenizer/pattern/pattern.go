// Package pattern matches the regular expressions of tokenizer files: the part of
// Oniguruma's syntax (what the Hugging Face library compiles them with) that such files
// use, over code points as of Unicode 16.0, with Oniguruma's choice of match: leftmost,
// then the first alternative that leads to one.
//
// Start with [Compile] and [Pattern.All]. What is not understood exactly is an error that
// names it: back references, look-behind, look-ahead over more than one code point, word
// boundaries, named groups, free spacing.
//
// Searching is linear in the text whatever the pattern: see machine.go.
package pattern

import (
	"iter"

	"tfbatch/internal/tokenizer/ucd"
)

// maxPattern is the longest accepted expression in bytes. The longest in use has about 500.
const maxPattern = 4 << 10

// Pattern is a compiled expression. Any number of goroutines may use it at once.
type Pattern struct {
	fast program // runs of one class are one instruction
	slow program // the same language in single steps, whose failures can be remembered
}

// Compile reads an expression. Its errors hold the expression's offset.
func Compile(expr string) (*Pattern, error) {
	root, err := parse(expr)
	if err != nil {
		return nil, err
	}
	return build(root)
}

// Runes is the pattern that matches any one code point of the set.
func Runes(set ucd.Ranges) *Pattern {
	p, err := build(&node{op: opSet, set: set})
	if err != nil {
		panic("pattern: one set does not compile: " + err.Error())
	}
	return p
}

// All yields the start and end of every match in text, which must be valid UTF-8. After an
// empty match the search goes on at its end but does not take another empty one there.
func (p *Pattern) All(text string) iter.Seq2[int, int] {
	return newMachine(p, text).all
}
