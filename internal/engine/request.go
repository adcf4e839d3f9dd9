package engine

import (
	"errors"
	"fmt"
)

// Request is one reply to make. The engine reads it until the row is returned by Step,
// and changes nothing in it.
type Request struct {
	Key       string // the row's name: with Sample and Sampling.Seed it fixes every draw
	Sample    int    // which of several replies to the same prompt, from 0
	Prompt    []int32
	Begun     []int32 // the first tokens of the reply, where it was suspended; usually none
	MaxTokens int     // most tokens of the reply, at least 1
	Sampling  Sampling
	Stop      Stopper    // nil: none; it has heard Begun
	Only      Constraint // nil: none; it has heard Begun
}

// Constraint holds a reply to a form. Its methods are called in turn, on the engine's goroutine.
type Constraint interface {
	// Allowed is the ids that may come next, a bit each, lowest first; at least one. The engine does not change it.
	Allowed() ([]uint64, error)
	// Push takes the next committed token, which was allowed.
	Push(id int32)
}

// Stopper watches a reply for text that ends it, which the engine cannot see.
type Stopper interface {
	// Push takes the next committed token; true ends the reply with it. It is called once
	// for each token, in order, on the engine's goroutine.
	Push(id int32) (stop bool)
}

// Finish is why a reply ended.
type Finish string

// The reasons. The token that completed a stop string and the end token are part of the reply.
const (
	FinishStop    Finish = "stop"    // an end token, a stop id, or the Stopper
	FinishLength  Finish = "length"  // MaxTokens
	FinishContext Finish = "context" // Config.Context
)

// ErrNonfinite fails a row whose logits hold a NaN or an infinity. It is never turned into a token.
var ErrNonfinite = errors.New("non-finite logits")

// ErrConstraint fails a row whose [Constraint] cannot be held to.
var ErrConstraint = errors.New("constraint cannot be held")

// Result is a finished row. Tokens are the caller's.
type Result struct {
	Request *Request
	Tokens  []int32 // the reply, Begun included; what was committed before the failure when Err is set
	Finish  Finish  // empty when Err is set
	Err     error   // the row's own failure, as [ErrNonfinite]
}

// fits says in figures why r can never have a lane here, nil when it can.
func (e *Engine) fits(r *Request) error {
	switch {
	case len(r.Prompt) == 0:
		return errors.New("prompt is empty: at least one token is needed")
	case r.MaxTokens < 1:
		return fmt.Errorf("max tokens is %d: at least 1 is needed", r.MaxTokens)
	case len(r.Prompt) >= e.cfg.Context:
		return fmt.Errorf("prompt has %d tokens, which leaves no room for a reply in a context of %d", len(r.Prompt), e.cfg.Context)
	case len(r.Prompt)+len(r.Begun) >= e.limit(r):
		return fmt.Errorf("%d tokens of the reply are there already, of at most %d", len(r.Begun), e.limit(r)-len(r.Prompt))
	}
	if need := e.pagesFor(r); need > e.cfg.Pages {
		return fmt.Errorf("prompt of %d tokens and a reply of up to %d need %d pages of the %d there are",
			len(r.Prompt), r.MaxTokens, need, e.cfg.Pages)
	}
	return nil
}

// check is fits, and looks at every value of r too.
func (e *Engine) check(r *Request) error {
	if err := e.fits(r); err != nil {
		return err
	}
	if r.Sample < 0 {
		return fmt.Errorf("sample is %d: they count from 0", r.Sample)
	}
	for i, id := range r.Prompt {
		if !e.known(id) {
			return fmt.Errorf("prompt token %d is id %d, the vocabulary has %d", i, id, e.info.Vocab)
		}
	}
	for i, id := range r.Begun {
		if !e.known(id) {
			return fmt.Errorf("reply token %d is id %d, the vocabulary has %d", i, id, e.info.Vocab)
		}
	}
	return r.Sampling.check(e.info.Vocab)
}

// known reports whether id is in the vocabulary.
func (e *Engine) known(id int32) bool { return id >= 0 && int(id) < e.info.Vocab }
