// Package grammar holds replies to a regular expression, a list of choices or a JSON schema.
//
// A grammar is an expression over bytes, and what may follow a text is the expression's derivative
// by it (Brzozowski, "Derivatives of regular expressions", 1964): a state is an expression too.
// Rules that name one another make JSON of any depth. Equal expressions are one, so derivatives and
// the masks of a vocabulary are worked out once for each state that is met.
package grammar

import (
	"errors"
	"fmt"
	"sync"
)

// ErrTooLarge is a grammar that needs more memory than it may have.
var ErrTooLarge = errors.New("grammar has too many states")

// ErrUnsatisfiable is a state that no token of the vocabulary continues and that may not end.
var ErrUnsatisfiable = errors.New("no token of the vocabulary can follow")

// Grammar is a compiled set of texts. Goroutines may share it.
type Grammar struct {
	mu    sync.Mutex
	pool  pool
	start expr
}

// compile runs build on a new pool. A grammar that holds no text is an error.
func compile(build func(p *pool) (expr, error)) (g *Grammar, err error) {
	g = &Grammar{pool: newPool()}
	defer g.pool.recover(&err)
	if g.start, err = build(&g.pool); err != nil {
		return nil, err
	}
	if g.start == never {
		return nil, errors.New("nothing can match")
	}
	return g, nil
}

// Match reports whether the whole of text is in the grammar.
func (g *Grammar) Match(text string) (ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.pool.recover(&err)
	at := g.start
	for i := range len(text) {
		at = g.pool.step(at, text[i])
	}
	return g.pool.nodes[at].empty, nil
}

// maxChoices is how many choices a list may have.
const maxChoices = 10_000

// Choice is the grammar of a list of texts.
func Choice(texts []string) (*Grammar, error) {
	if len(texts) == 0 || len(texts) > maxChoices {
		return nil, fmt.Errorf("choice has %d texts, want 1 to %d", len(texts), maxChoices)
	}
	return compile(func(p *pool) (expr, error) {
		kids := make([]expr, len(texts))
		for i, t := range texts {
			if t == "" {
				return 0, fmt.Errorf("choice[%d] is empty", i)
			}
			kids[i] = p.literal(t)
		}
		return p.alt(kids...), nil
	})
}
