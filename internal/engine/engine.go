// Package engine continues many sequences at once: it decides which rows run in each
// forward, draws the tokens, checks guesses and ends replies. It never sees text, files
// or a kind of device.
//
// Start with [Engine.Step], which is the whole loop: schedule, guess, forward, commit,
// retire. Plain decoding is drafting with no guesses, so there is one loop and not two.
//
// The tokens of a reply depend on the model, the [Request] and nothing else: not on the
// other lanes, the prefill chunk, the drafter or the order of admission. That rests on
// the arithmetic contract (backend/ARITHMETIC.md), on draws keyed by the row's own name
// and position, and on a guess being kept only where it equals the draw.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/model"
)

// Config is the size of a run. None of it changes a token.
type Config struct {
	Lanes   int  // most sequences at once
	Pages   int  // KV pages of backend.PageKeys positions, shared by the lanes
	Chunk   int  // most prompt rows in one forward, over all lanes
	Context int  // positions a lane may use, prompt and reply together
	KVF32   bool // keep K and V as f32

	Quick   draft.Drafter // guesses that take no time worth counting, as draft.Copy; nil: none
	Drafter draft.Drafter // asked about the lanes that Quick has no guess for; nil: none
	Depth   Depth         // how many guesses a lane may get
}

// Engine runs requests on one model and one device. One goroutine uses it.
type Engine struct {
	cfg   Config
	dev   backend.Device
	info  model.Info
	state model.State
	now   func() time.Time

	lanes  []*lane // running, in order of admission
	idle   []*lane // free places
	pool   *pool
	window int // most rows of a lane whose logits are wanted: 1 + the most guesses

	drawer drawer

	policy  policy
	quick   draft.Drafter // of Config, where guesses are wanted
	drafter draft.Drafter
	watcher draft.Watcher // the drafter, where it watches taps
	seeds   bool          // the drafter can be tried on prompts

	// Scratch of a step, kept to spare allocations.
	round  round
	spans  []span
	asks   []draft.Ask
	asked  []asked
	held   held
	batch  model.Batch
	pages  [][]int32 // by lane index: backend.Rows.Pages
	logits []float32

	stats Stats
}

// New reserves the state of cfg.Lanes lanes on dev. Where guesses are wanted it first makes sure that they
// cannot be seen, which takes a few forwards, or returns [ErrUneven].
func New(dev backend.Device, m model.Model, cfg Config) (*Engine, error) {
	return newEngine(dev, m, cfg, time.Now)
}

func newEngine(dev backend.Device, m model.Model, cfg Config, now func() time.Time) (*Engine, error) {
	info := m.Info()
	if err := cfg.check(info); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, dev: dev, info: info, now: now,
		pool:   newPool(cfg.Pages),
		window: 1 + cfg.most(),
		policy: cfg.policy(),
		pages:  make([][]int32, cfg.Lanes),
	}
	if e.window > 1 {
		e.quick, e.drafter = cfg.Quick, cfg.Drafter
		e.watcher, _ = cfg.Drafter.(draft.Watcher)
		_, e.seeds = cfg.Drafter.(draft.Seedable)
	}
	for i := range cfg.Lanes {
		e.idle = append(e.idle, &lane{index: int32(cfg.Lanes - 1 - i)}) // place 0 is taken first
	}
	var err error
	if e.state, err = m.NewState(cfg.Shape()); err != nil {
		return nil, fmt.Errorf("state of %d lanes and %d pages: %w", cfg.Lanes, cfg.Pages, err)
	}
	if e.window > 1 {
		if err := e.prepare(context.Background()); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Shape is the state that an engine of this size needs, for a plan of its memory.
func (c Config) Shape() model.Shape {
	window := 1 + c.most()
	s := model.Shape{
		Lanes: c.Lanes, Pages: c.Pages, KVF32: c.KVF32,
		Rows:   c.Chunk + c.Lanes*window,
		Heads:  c.Lanes * window,
		Window: window,
	}
	if w, ok := c.Drafter.(draft.Watcher); ok && window > 1 {
		s.Taps = w.Taps()
	}
	return s
}

func (c Config) check(info model.Info) error {
	switch {
	case c.Lanes < 1 || c.Pages < 1 || c.Chunk < 1 || c.Context < 2:
		return fmt.Errorf("engine of %d lanes, %d pages, chunk %d, context %d: at least 1, 1, 1 and 2 are needed",
			c.Lanes, c.Pages, c.Chunk, c.Context)
	case c.Context > info.Context:
		return fmt.Errorf("context of %d positions: the model was made for %d", c.Context, info.Context)
	case info.Vocab < 1:
		return errors.New("model has no vocabulary")
	}
	return c.Depth.check()
}

// most is the largest number of guesses a lane can get in a round.
func (c Config) most() int {
	if len(c.drafters()) == 0 {
		return 0
	}
	return c.Depth.most()
}

func (c Config) drafters() []draft.Drafter {
	all := []draft.Drafter{c.Quick, c.Drafter}
	return slices.DeleteFunc(all, func(d draft.Drafter) bool { return d == nil })
}

func (c Config) policy() policy {
	if c.Depth == Auto {
		s := c.Shape()
		return newLedger(s.Lanes, s.Heads, s.Rows)
	}
	return fixed(c.Depth)
}

// Active is the number of lanes that are running.
func (e *Engine) Active() int { return len(e.lanes) }

// Room reports whether Admit would decide about r now: a lane and the pages for r are
// free, or r can never fit and Admit will say why.
func (e *Engine) Room(r *Request) bool {
	if e.fits(r) != nil {
		return true
	}
	return len(e.idle) > 0 && len(e.pool.free) >= e.pagesFor(r)
}

// Admit gives r a lane. The caller has asked Room; an error means that r can never run
// here and names the figures.
func (e *Engine) Admit(r *Request) error {
	if err := e.check(r); err != nil {
		return err
	}
	if !e.Room(r) {
		panic(fmt.Sprintf("engine: admitted %q without room: %d lanes and %d pages free", r.Key, len(e.idle), len(e.pool.free)))
	}
	l := e.idle[len(e.idle)-1]
	e.idle = e.idle[:len(e.idle)-1]
	l.open(r, e.limit(r), e.pool.take(l.pages, e.pagesFor(r)))
	e.pages[l.index] = l.pages
	e.lanes = append(e.lanes, l)
	e.introduce(l)
	return nil
}

// limit is the most ids r can come to, prompt and reply.
func (e *Engine) limit(r *Request) int { return min(len(r.Prompt)+r.MaxTokens, e.cfg.Context) }

// pagesFor counts the pages r may need. The last token of a reply is never fed, so it has no place.
func (e *Engine) pagesFor(r *Request) int {
	return (e.limit(r) - 1 + backend.PageKeys - 1) / backend.PageKeys
}
