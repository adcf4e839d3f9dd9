package stages

import (
	"context"
	"errors"

	"tfbatch/internal/engine"
	"tfbatch/internal/row"
	"tfbatch/pipeline"
)

// Engine is what generate drives, on its one goroutine: an [engine.Engine], or a fake.
type Engine interface {
	// Room reports whether Admit would decide about r now.
	Room(r *engine.Request) bool
	// Admit starts r, or says why it can never run.
	Admit(r *engine.Request) error
	// Step runs one round of all that was admitted and returns what ended in it.
	Step(ctx context.Context) ([]engine.Result, error)
}

// generator feeds the engine and puts replies back to their rows.
type generator struct {
	engine  Engine
	model   *Model
	stopped func() bool // no row is started any more
	meter   *Meter
	audit   *auditor // nil: none

	waiting []*engine.Request // samples of one row that have no lane yet
	running map[*engine.Request]*pending
	closed  bool // the input is
}

// pending is a row whose replies are being made.
type pending struct {
	row  *row.Row
	left int // replies to come
	errs []error
}

func (g *generator) stage() pipeline.Stage[*row.Row] {
	return pipeline.Stage[*row.Row]{Name: "generate", Workers: 1, Do: g.do}
}

func (g *generator) do(ctx context.Context, in <-chan *row.Row, out chan<- *row.Row) error {
	g.running = map[*engine.Request]*pending{}
	for {
		if err := g.fill(ctx, in, out); err != nil {
			return err
		}
		if len(g.running) == 0 {
			return g.audits(ctx)
		}
		results, err := g.engine.Step(ctx)
		if err != nil {
			return err
		}
		g.meter.stepped(len(g.running) - len(g.waiting))
		for i := range results {
			if err := g.collect(ctx, out, &results[i]); err != nil {
				return err
			}
		}
		if err := g.auditBeside(ctx); err != nil {
			return err
		}
	}
}

// audits makes what is left of them once no lane runs. After a stop the job has its gaps
// anyhow, and who stopped it does not want to wait.
func (g *generator) audits(ctx context.Context) error {
	if g.audit == nil || g.stopped() {
		return nil
	}
	return g.audit.finish(ctx)
}

// auditBeside goes on with an audit where a lane has run out of rows while others still run.
func (g *generator) auditBeside(ctx context.Context) error {
	q := g.audit.next()
	if q == nil || !g.closed || len(g.waiting) > 0 || g.stopped() || !g.engine.Room(q) {
		return nil
	}
	return g.audit.step(ctx)
}

// fill starts what there is room for. Rows start in the order they come, so that a large
// one is not passed over for ever. It waits for input only while nothing runs, and returns
// with nothing running only when the input has ended.
func (g *generator) fill(ctx context.Context, in <-chan *row.Row, out chan<- *row.Row) error {
	for {
		g.letGo()
		for len(g.waiting) > 0 && g.engine.Room(g.waiting[0]) {
			if err := g.admit(ctx, out); err != nil {
				return err
			}
		}
		if len(g.waiting) > 0 {
			if len(g.running) == len(g.waiting) {
				return errors.New("engine is idle and has no room for a row that it does not refuse")
			}
			return nil
		}
		r, err := g.receive(ctx, in)
		if err != nil || r == nil {
			return err
		}
		if err := g.begin(ctx, r, out); err != nil {
			return err
		}
	}
}

// letGo drops the waiting row after a stop, unless one of its samples already runs.
func (g *generator) letGo() {
	if len(g.waiting) == 0 || !g.stopped() || len(g.waiting) < g.running[g.waiting[0]].row.Sampling.N {
		return
	}
	for _, q := range g.waiting {
		delete(g.running, q)
	}
	g.waiting = nil
}

// receive returns nil when there is no row now, or none to come. While every lane waits for the
// input, audits go on.
func (g *generator) receive(ctx context.Context, in <-chan *row.Row) (*row.Row, error) {
	for !g.closed {
		select {
		case r, open := <-in:
			g.closed = !open
			return r, nil
		default:
		}
		switch {
		case len(g.running) > 0:
			return nil, nil
		case g.audit.next() == nil || g.stopped():
			return g.await(ctx, in)
		}
		if err := g.audit.step(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (g *generator) await(ctx context.Context, in <-chan *row.Row) (*row.Row, error) {
	select {
	case r, open := <-in:
		g.closed = !open
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin queues a row's samples. A row that comes after the stop is let go: a later run
// makes it anew, with the same result.
func (g *generator) begin(ctx context.Context, r *row.Row, out chan<- *row.Row) error {
	if r.Err != nil {
		return pipeline.Send(ctx, out, r)
	}
	if g.stopped() {
		return nil
	}
	r.Choices = make([]row.Choice, r.Sampling.N)
	p := &pending{row: r, left: r.Sampling.N, errs: make([]error, r.Sampling.N)}
	for sample := range r.Sampling.N {
		q := newRequest(g.model, r, sample)
		g.running[q] = p
		g.waiting = append(g.waiting, q)
	}
	return nil
}

// newRequest asks for one reply of a row.
func newRequest(m *Model, r *row.Row, sample int) *engine.Request {
	s := &r.Sampling
	q := &engine.Request{
		Key: r.ID, Sample: sample, Prompt: r.Tokens,
		MaxTokens: s.MaxTokens,
		Sampling: engine.Sampling{
			Seed: s.Seed, Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP, MinP: s.MinP,
			RepetitionPenalty: s.RepetitionPenalty, PresencePenalty: s.PresencePenalty, FrequencyPenalty: s.FrequencyPenalty,
			LogitBias: s.LogitBias, StopIDs: s.StopIDs,
		},
	}
	if form, err := m.Formats.of(s.ResponseFormat); form != nil && err == nil { // encode has refused what cannot be
		q.Only = form.Start()
	}
	if len(s.Stop) > 0 {
		q.Stop = newStopper(m.Stream(), s.Stop)
	}
	return q
}

// admit starts the first waiting sample. One that can never run counts as a reply that failed.
func (g *generator) admit(ctx context.Context, out chan<- *row.Row) error {
	q := g.waiting[0]
	g.waiting = g.waiting[1:]
	if err := g.engine.Admit(q); err != nil {
		return g.collect(ctx, out, &engine.Result{Request: q, Err: &refusal{err}})
	}
	return nil
}

// refusal marks the error of a row that the engine cannot run at this size.
type refusal struct{ error }

// collect puts a reply to its row, and sends the row on with the last of them.
func (g *generator) collect(ctx context.Context, out chan<- *row.Row, res *engine.Result) error {
	q := res.Request
	p := g.running[q]
	delete(g.running, q)
	p.errs[q.Sample] = res.Err
	if res.Err == nil {
		p.row.Choices[q.Sample] = row.Choice{Tokens: res.Tokens, Finish: finishOf(res)}
		if g.audit.wants(q.Key) {
			if err := g.audit.take(ctx, p.row.Index, newRequest(g.model, p.row, q.Sample), res.Tokens); err != nil {
				return err
			}
		}
	}
	if p.left--; p.left > 0 {
		return nil
	}
	p.row.Err = rowError(p.errs)
	return pipeline.Send(ctx, out, p.row)
}

// finishOf tells the engine's two kinds of stop apart.
func finishOf(res *engine.Result) row.Finish {
	switch res.Finish {
	case engine.FinishLength:
		return row.Length
	case engine.FinishContext:
		return row.Context
	}
	if s, ok := res.Request.Stop.(*stopper); ok && s.hit {
		return row.StopString
	}
	return row.EndToken
}

// rowError is the error of the first sample that has one, whichever failed first.
func rowError(errs []error) *row.Error {
	for _, err := range errs {
		var refused *refusal
		switch {
		case err == nil:
		case errors.Is(err, engine.ErrNonfinite):
			return fail(row.NonfiniteLogits, "%v", err)
		case errors.Is(err, engine.ErrConstraint):
			return fail(row.Unsatisfied, "response_format %v", err)
		case errors.As(err, &refused):
			return fail(row.ContextLength, "%v", err)
		default:
			return fail(row.Internal, "%v", err)
		}
	}
	return nil
}
