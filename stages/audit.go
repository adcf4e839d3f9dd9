package stages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"tfbatch/internal/engine"
)

// Audit makes a share of the replies once more, alone and without guesses, while lanes have
// nothing else to do, and compares them. One that differs ends the run.
type Audit struct {
	Engine  Engine  // one lane, no drafter
	Percent float64 // of the rows, chosen by their ids; the first reply is always taken
	// Margin tells how far the two likeliest tokens behind ids are apart, for a message.
	Margin func(ctx context.Context, ids []int32) (float32, error)
}

// Difference is a reply that plain decoding does not give.
type Difference struct {
	Row      int64   `json:"row"` // of the input
	ID       string  `json:"custom_id"`
	Sample   int     `json:"sample"`
	Position int     `json:"position"`    // of the first token that differs, in the reply
	Recorded int32   `json:"recorded_id"` // the token that was there, noToken past the end, unknownToken when only its hash is
	Plain    int32   `json:"plain_id"`    // the token that plain decoding gives, noToken past the end
	Margin   float32 `json:"margin"`      // between the two largest logits there
}

// Places of a reply without an id that could be told.
const (
	noToken      = -1 // past the end
	unknownToken = -2 // recorded as a hash only, and not found again
)

func (d *Difference) Error() string {
	return fmt.Sprintf("row %q, reply %d: token %d is %s, plain decoding gives %s; the two largest logits there differ by %v",
		clip(d.ID), d.Sample, d.Position, tokenText(d.Recorded), tokenText(d.Plain), d.Margin)
}

func tokenText(id int32) string {
	if id == noToken {
		return "none"
	}
	if id == unknownToken {
		return "not known"
	}
	return fmt.Sprintf("id %d", id)
}

// maxAudits bounds what waits for its audit. With more than these one is made at once, so
// that a long job needs no more memory than a short one.
const maxAudits = 256

// auditor holds on to replies until lanes are idle. The generator's goroutine uses it.
type auditor struct {
	*Audit
	equal   func(index int64, sample int) error // notes a reply that was equal
	any     bool                                // a reply was taken
	waiting []audited                           // the first of them may be in the engine already
	started bool                                // it is
	done    int64
}

// audited is a reply and what made it.
type audited struct {
	index   int64
	request *engine.Request
	tokens  []int32
}

// wants reports whether the row of this id is in the share.
func (a *auditor) wants(id string) bool {
	return a != nil && (!a.any || a.Audit.wants(id))
}

func (a *Audit) wants(id string) bool { return a != nil && picked(id, share(a.Percent)) }

// take keeps a reply for later.
func (a *auditor) take(ctx context.Context, index int64, q *engine.Request, tokens []int32) error {
	a.any = true
	a.waiting = append(a.waiting, audited{index, q, tokens})
	for len(a.waiting) > maxAudits {
		if err := a.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish audits all that waits.
func (a *auditor) finish(ctx context.Context) error {
	for a.next() != nil {
		if err := a.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next is what the next step works on, nil when nothing waits.
func (a *auditor) next() *engine.Request {
	if a == nil || len(a.waiting) == 0 {
		return nil
	}
	return a.waiting[0].request
}

// step goes on with the first that waits, by one round of the engine.
func (a *auditor) step(ctx context.Context) error {
	one := a.waiting[0]
	if !a.started {
		if err := a.Engine.Admit(one.request); err != nil {
			return fmt.Errorf("row %q again: %w", clip(one.request.Key), err)
		}
		a.started = true
	}
	results, err := a.Engine.Step(ctx)
	if err != nil || len(results) == 0 {
		return err
	}
	a.waiting, a.started = a.waiting[1:], false
	a.done++
	if err := results[0].Err; err != nil {
		return err
	}
	return a.compare(ctx, &one, results[0].Tokens)
}

func (a *auditor) compare(ctx context.Context, one *audited, plain []int32) error {
	at := firstDifference(one.tokens, plain)
	if at < 0 {
		return a.equal(one.index, one.request.Sample)
	}
	d := &Difference{
		Row: one.index, ID: one.request.Key, Sample: one.request.Sample,
		Position: at, Recorded: token(one.tokens, at), Plain: token(plain, at),
	}
	var err error
	if d.Margin, err = a.Margin(ctx, behind(one.request.Prompt, plain, at)); err != nil {
		return err
	}
	return fmt.Errorf("audit: %w", d)
}

// redo is the reply to one request on an engine that does nothing else.
func redo(ctx context.Context, e Engine, q *engine.Request) ([]int32, error) {
	if err := e.Admit(q); err != nil {
		return nil, fmt.Errorf("row %q again: %w", clip(q.Key), err)
	}
	for {
		done, err := e.Step(ctx)
		if err != nil {
			return nil, err
		}
		if len(done) > 0 {
			return done[0].Tokens, done[0].Err
		}
	}
}

// firstDifference is the first place where a and b are not the same, -1 when they are.
func firstDifference(a, b []int32) int {
	for i := range max(len(a), len(b)) {
		if token(a, i) != token(b, i) {
			return i
		}
	}
	return -1
}

func token(ids []int32, i int) int32 {
	if i >= len(ids) {
		return noToken
	}
	return ids[i]
}

// behind is all that stands before the token at place at of a reply.
func behind(prompt, reply []int32, at int) []int32 {
	return append(append([]int32{}, prompt...), reply[:at]...)
}

// draw is where an id lies between all ids: even, and the same on every run.
func draw(id string) uint64 {
	sum := sha256.Sum256([]byte("tfbatch/pick/1\n" + id))
	return binary.LittleEndian.Uint64(sum[:])
}

// picked reports whether an id is below the bar.
func picked(id string, bar uint64) bool { return draw(id) <= bar }

// share is the bar that so many percent of all ids are below.
func share(percent float64) uint64 {
	if percent >= 100 {
		return math.MaxUint64
	}
	return uint64(percent / 100 * math.MaxUint64)
}
