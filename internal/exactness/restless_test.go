package exactness

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"tfbatch/internal/engine"
)

// mostLeaves bounds how often rows are taken out of their lanes, each time to read all they had again.
const mostLeaves = 8

// restless drives e until every request has ended, as replies does, but rows join between any two rounds, and now
// and then one leaves in the middle of its prompt or its reply and goes on later, in whatever lane is free.
func restless(t *testing.T, e *engine.Engine, waiting []*engine.Request, seed uint64) iter.Seq[engine.Result] {
	random := rand.New(rand.NewPCG(seed, 7))
	return func(yield func(engine.Result) bool) {
		var running []*engine.Request
		for leaves := 0; len(waiting) > 0 || len(running) > 0; {
			for len(waiting) > 0 && e.Room(waiting[0]) && (len(running) == 0 || random.IntN(3) > 0) {
				if err := e.Admit(waiting[0]); err != nil {
					t.Fatal(err)
				}
				running, waiting = append(running, waiting[0]), waiting[1:]
			}
			done, err := e.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range done {
				if r.Err != nil {
					t.Fatalf("row %s: %v", r.Request.Key, r.Err)
				}
				running = slices.DeleteFunc(running, func(q *engine.Request) bool { return q == r.Request })
				yield(r)
			}
			if len(running) > 0 && leaves < mostLeaves && random.IntN(8) == 0 {
				i := random.IntN(len(running))
				waiting = append(waiting, leave(t, e, running[i]))
				running, leaves = slices.Delete(running, i, i+1), leaves+1
			}
		}
	}
}

// leave takes r out of its lane, and is what is left of it to do.
func leave(t *testing.T, e *engine.Engine, r *engine.Request) *engine.Request {
	t.Helper()
	begun, ok := e.Suspend(r)
	if !ok {
		t.Fatalf("row %s runs and cannot leave", r.Key)
	}
	rest := *r
	rest.Begun = begun
	return &rest
}
