package tokenizer

import (
	"strings"

	"tfbatch/internal/tokenizer/pattern"
	"tfbatch/internal/tokenizer/ucd"
)

// step is one pre-tokenizer: it cuts a piece of text into smaller ones, in order. Neither
// gets nor gives empty pieces.
type step interface {
	split(p piece, emit func(piece))
}

// piece is a part of the text on its way to the model.
type piece struct {
	text  string
	first bool // it starts where the whole text does
}

const splitters = "Sequence, Split, ByteLevel, Digits, Metaspace"

// readSplitter appends the steps of p to list.
func readSplitter(p part, list []step, depth int) ([]step, error) {
	if p.null() {
		return list, nil
	}
	kind, err := p.kind()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		return readSequence(p, "pretokenizers", list, depth, readSplitter)
	case "Split":
		s, err := readSplit(p)
		return append(list, s), err
	case "Digits":
		s, err := readDigits(p)
		return append(list, s), err
	case "ByteLevel":
		return readByteLevel(p, list)
	case "Metaspace":
		m, err := readMetaspace(p)
		return append(list, m), err
	}
	return nil, p.unsupported(kind, splitters)
}

// behavior is what a Split does with a match.
type behavior string

const (
	isolated     behavior = "Isolated"           // a piece of its own
	removed      behavior = "Removed"            // dropped
	withPrevious behavior = "MergedWithPrevious" // the end of the piece before
	withNext     behavior = "MergedWithNext"     // the start of the piece after
	contiguous   behavior = "Contiguous"         // one piece with the matches beside it
)

type split struct {
	find     finder
	behavior behavior
	invert   bool // what is between matches counts as match, and the other way round
}

func readSplit(p part) (step, error) {
	o, err := p.object("type", "pattern", "behavior", "invert")
	if err != nil {
		return nil, err
	}
	name, err := o.text("behavior")
	if err != nil {
		return nil, err
	}
	s := split{behavior: behavior(name)}
	switch s.behavior {
	case isolated, removed, withPrevious, withNext, contiguous:
	default:
		return nil, o.get("behavior").errorf("%q is not known", name)
	}
	if err := o.get("invert").into(&s.invert); err != nil {
		return nil, err
	}
	s.find, _, err = readFinder(o.get("pattern"))
	return s, err
}

func readDigits(p part) (step, error) {
	o, err := p.object("type", "individual_digits")
	if err != nil {
		return nil, err
	}
	each, err := o.flag("individual_digits", false)
	s := split{find: numbers(), behavior: contiguous}
	if each {
		s.behavior = isolated
	}
	return s, err
}

// numbers finds what Rust's char::is_numeric holds for, which in the library as released
// follows Unicode 17.0: category N of 16.0 and 13 later ones.
func numbers() finder {
	return pattern.Runes(ucd.Union(class("N"), ucd.Ranges{{Lo: 0x11DE0, Hi: 0x11DE9}, {Lo: 0x16FF4, Hi: 0x16FF6}})).All
}

// gpt2 is the pattern behind ByteLevel's use_regex.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// readByteLevel reads a ByteLevel as the steps it consists of.
func readByteLevel(p part, list []step) ([]step, error) {
	o, err := p.object("type", "add_prefix_space", "trim_offsets", "use_regex")
	if err != nil {
		return nil, err
	}
	var prefix bool
	if err := o.get("add_prefix_space").into(&prefix); err != nil {
		return nil, err
	}
	regex, err := o.flag("use_regex", true)
	if err != nil {
		return nil, err
	}
	if prefix {
		list = append(list, spaced{})
	}
	if regex {
		p, err := pattern.Compile(gpt2)
		if err != nil {
			panic("tokenizer: " + err.Error())
		}
		list = append(list, split{behavior: isolated, find: p.All})
	}
	return append(list, alphabet{}), nil
}

func (s split) split(p piece, emit func(piece)) {
	c := collector{behavior: s.behavior, whole: p, emit: emit}
	done := 0
	for start, end := range s.find(p.text) {
		if done < start {
			c.span(done, start, s.invert)
		}
		c.span(start, end, !s.invert)
		done = end
	}
	if done < len(p.text) {
		c.span(done, len(p.text), s.invert)
	}
	c.piece(c.from, c.to)
}

// collector joins spans to pieces. It gets every span of the text in order, matches and
// what lies between, and holds back the one that may still grow.
type collector struct {
	behavior behavior
	whole    piece
	emit     func(piece)
	from, to int
	matched  bool // the span before was a match
	started  bool
}

func (c *collector) span(from, to int, match bool) {
	var grow bool
	switch c.behavior {
	case isolated:
	case removed:
		if match {
			return
		}
	case withPrevious:
		grow = match && !c.matched
	case withNext:
		grow = !match && c.matched
	case contiguous:
		grow = match == c.matched
	}
	if !grow || !c.started {
		c.piece(c.from, c.to)
		c.from = from
	}
	c.to, c.matched, c.started = to, match, true
}

func (c *collector) piece(from, to int) {
	if from < to {
		c.emit(piece{c.whole.text[from:to], c.whole.first && from == 0})
	}
}

// spaced puts a space before a piece that has none.
type spaced struct{}

func (spaced) split(p piece, emit func(piece)) {
	if !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	emit(p)
}

// alphabet writes every byte as the character that stands for it. As the last step it is
// left out: the model then takes the bytes.
type alphabet struct{}

func (alphabet) split(p piece, emit func(piece)) { emit(piece{spell(p.text), p.first}) }
