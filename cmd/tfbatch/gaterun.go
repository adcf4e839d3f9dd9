package main

import (
	"context"
	"fmt"
	"time"

	"tfbatch/internal/engine"
	"tfbatch/internal/gate"
	"tfbatch/internal/row"
)

// gateTurn is how long a trial goes on before the next arm has its turn: much longer than the caches take to fill, and
// much shorter than what else a machine does.
const gateTurn = 20 * time.Millisecond

// gateRun is a trial that has begun.
type gateRun struct {
	engine   *engine.Engine
	requests []*engine.Request
	clock    func() time.Duration
	before   engine.Stats
	spent    time.Duration
	replies  map[*engine.Request][]int32
}

// Begin is a trial of the gate.
func (b *gateBench) Begin(t gate.Trial) (gate.Run, error) { return b.begin(t, b.app.set.tokens) }

func (b *gateBench) begin(t gate.Trial, tokens int) (*gateRun, error) {
	k := b.kinds[t.Kind]
	e := k.engines[t.Arm]
	e.Anew() // or the gains of one cell would hide the losses of another
	r := &gateRun{engine: e, clock: b.clock(), before: e.Stats(), replies: map[*engine.Request][]int32{}}
	for i := range t.Lanes {
		q := k.request(i, t.Draw, tokens)
		r.requests = append(r.requests, q)
		if err := e.Admit(q); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// clock is the one that the trials are timed by.
func (b *gateBench) clock() func() time.Duration {
	if b.app.set.clock == clockCPU {
		return processTime
	}
	started := time.Now()
	return func() time.Duration { return time.Since(started) }
}

// Turn is the trial's next few steps.
func (r *gateRun) Turn(ctx context.Context) (ended bool, err error) {
	started := r.clock()
	for now := started; r.engine.Active() > 0 && now-started < gateTurn; now = r.clock() {
		done, err := step(ctx, r.engine)
		if err != nil {
			return false, err
		}
		for _, reply := range done {
			r.replies[reply.Request] = reply.Tokens
		}
	}
	r.spent += r.clock() - started
	return r.engine.Active() == 0, nil
}

// Outcome is what the trial came to.
func (r *gateRun) Outcome() gate.Outcome {
	did := r.engine.Stats().Since(r.before)
	out := gate.Outcome{
		Seconds: r.spent.Seconds(),
		Drafted: did.Drafted, Accepted: did.Accepted,
		Rounds: did.Rounds, Asked: did.Asked, Watched: did.Watched,
		Drafting: did.Draft.Seconds(), Host: did.Host.Seconds(),
	}
	for _, q := range r.requests {
		ids := r.replies[q]
		out.Replies = append(out.Replies, gate.Reply{
			Key: fmt.Sprintf("%s/%d", q.Key, q.Sample), Tokens: len(ids), Hash: row.TokenHash(ids).String(),
		})
	}
	return out
}

// gateSampling is how the sampled cells draw where the job is greedy.
const (
	gateTemperature = 0.8
	gateTopP        = 0.95
)

// request is the i-th of a trial: the rows in turn, further samples of them after the last.
func (k *gateKind) request(i int, draw string, tokens int) *engine.Request {
	r := k.rows[i%len(k.rows)]
	q := &engine.Request{Key: r.ID, Sample: i / len(k.rows), Prompt: r.Tokens, MaxTokens: tokens}
	q.Sampling = engine.Sampling{Seed: r.Sampling.Seed, IgnoreEOS: true}
	if draw == drawSampled {
		q.Sampling.Temperature, q.Sampling.TopP = gateTemperature, gateTopP
		if r.Sampling.Temperature > 0 {
			q.Sampling.Temperature, q.Sampling.TopP = r.Sampling.Temperature, r.Sampling.TopP
			q.Sampling.TopK, q.Sampling.MinP = r.Sampling.TopK, r.Sampling.MinP
		}
	}
	return q
}
