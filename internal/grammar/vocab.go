package grammar

import (
	"errors"
	"slices"
	"strings"
)

// Vocab is the bytes of a model's tokens, in order, so that tokens with a common start are walked once.
type Vocab struct {
	size   int
	tokens []spelled // sorted by text
	texts  []string  // by id; empty: the token is no text
	end    []int32
}

// spelled is a token that is a text. shared is how many bytes it has in common with the one before.
type spelled struct {
	id     int32
	shared int
	text   string
}

// NewVocab takes the text of each id below size, empty for a token that is none, as the special ones, and the ids
// that end a reply, of which there must be one.
func NewVocab(size int, text func(id int32) string, end []int32) (*Vocab, error) {
	v := &Vocab{size: size, texts: make([]string, size)}
	for id := range int32(size) {
		if t := text(id); t != "" && !slices.Contains(end, id) {
			v.texts[id] = t
			v.tokens = append(v.tokens, spelled{id: id, text: t})
		}
	}
	for _, id := range end {
		if id >= 0 && int(id) < size {
			v.end = append(v.end, id)
		}
	}
	if len(v.end) == 0 {
		return nil, errors.New("the model has no token that ends a reply")
	}
	slices.SortFunc(v.tokens, func(a, b spelled) int { return strings.Compare(a.text, b.text) })
	for i := range v.tokens[1:] {
		v.tokens[i+1].shared = common(v.tokens[i].text, v.tokens[i+1].text)
	}
	return v, nil
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// mask is the ids that may follow in a state, a bit each. It walks the sorted tokens with the states after each
// byte, and passes over all that share a start which nothing continues.
func (v *Vocab) mask(p *pool, at expr) ([]uint64, error) {
	bits := make([]uint64, (v.size+63)/64)
	some := p.nodes[at].empty
	if some {
		for _, id := range v.end {
			bits[id/64] |= 1 << (id % 64)
		}
	}
	path := []expr{at} // path[n] is the state after n bytes
	dead := 1 << 30    // tokens that share as many bytes are dead too
	for _, t := range v.tokens {
		if t.shared >= dead {
			continue
		}
		path, dead = path[:min(t.shared, len(path)-1)+1], 1<<30
		for n := len(path) - 1; n < len(t.text); n++ {
			next := p.step(path[n], t.text[n])
			if next == never {
				dead = n + 1
				break
			}
			path = append(path, next)
		}
		if dead == 1<<30 {
			bits[t.id/64] |= 1 << (t.id % 64)
			some = true
		}
	}
	if !some {
		return nil, ErrUnsatisfiable
	}
	return bits, nil
}
