package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tfbatch/internal/engine"
	"tfbatch/internal/row"
	"tfbatch/jobs"
)

// newAudit makes a run whose replies are held to an honest engine's.
func newAudit(s *Setup, percent float64) *fakeEngine {
	plain := &fakeEngine{lanes: 1, script: echo}
	s.Audit = &Audit{Engine: plain, Percent: percent,
		Margin: func(_ context.Context, ids []int32) (float32, error) { return float32(len(ids)), nil }}
	return plain
}

func prompts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"custom_id\":\"r%d\",\"prompt\":\"q%d\",\"n\":2,\"stop\":[\"é\"]}\n", i, i)
	}
	return b.String()
}

func TestAuditOfEqualReplies(t *testing.T) {
	for _, c := range []struct {
		percent  float64
		low, top int64
	}{{100, 1000, 1000}, {10, 60, 150}, {1e-9, 1, 1}} {
		s := newSetup(t, prompts(500), nil)
		plain := newAudit(s, c.percent)
		report, err := Run(t.Context(), s)
		if err != nil || !report.Complete {
			t.Fatalf("%v%%: %+v, %v", c.percent, report, err)
		}
		if n := report.Audited; n < c.low || n > c.top || int64(plain.admits) != n {
			t.Errorf("%v%% of 1000 replies: %d audited and %d made, want %d to %d", c.percent, n, plain.admits, c.low, c.top)
		}
	}
}

// TestAuditFindsAChangedToken plants one wrong token in one reply.
func TestAuditFindsAChangedToken(t *testing.T) {
	s := newSetup(t, prompts(20), nil)
	newAudit(s, 100)
	s.Engine = &fakeEngine{lanes: 4, script: func(q *engine.Request) ([]int32, error) {
		ids, err := echo(q)
		if q.Key == "r7" && q.Sample == 1 {
			ids = slices.Clone(ids)
			ids[3] = 'X'
		}
		return ids, err
	}}
	report, err := Run(t.Context(), s)
	var d *Difference
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want a difference", err)
	}
	if d.Row != 7 || d.ID != "r7" || d.Sample != 1 || d.Position != 3 || d.Recorded != 'X' || d.Plain == 'X' || d.Margin == 0 {
		t.Errorf("got %+v", *d)
	}
	if report.Complete || files(t, s)[rowsName] != "" {
		t.Error("a run with a difference has an output under its final name")
	}
}

// TestAuditsAreMadeWhereLanesAreIdle holds them to the end of the input, beside the rows that run on.
func TestAuditsAreMadeWhereLanesAreIdle(t *testing.T) {
	const rows = 40
	in, out := make(chan *row.Row, rows), make(chan *row.Row, rows)
	for i := range rows {
		in <- &row.Row{Index: int64(i), ID: fmt.Sprint(i), Tokens: []int32{'q'}, Sampling: row.Sampling{N: 1, MaxTokens: 9}}
	}
	close(in)
	lanes, plain := &fakeEngine{lanes: 4, script: echo}, &fakeEngine{lanes: 1, script: echo}
	beside := map[int]int{} // audits by lanes that run
	plain.step = func() error { beside[len(lanes.active)]++; return nil }
	equal := 0
	g := &generator{engine: lanes, model: &Model{}, stopped: func() bool { return false }, meter: &Meter{},
		audit: &auditor{Audit: &Audit{Engine: plain, Percent: 100}, equal: func(int64, int) error { equal++; return nil }}}
	if err := g.do(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	// Each round of the fake engines ends a reply.
	if want := (map[int]int{3: 1, 2: 1, 1: 1, 0: rows - 3}); !maps.Equal(beside, want) || equal != rows {
		t.Errorf("audits by lanes that run: %v, want %v; %d equal", beside, want, equal)
	}
}

// TestAuditStopsAJobThatWaitsForItsInput never gives the second row: the mismatch in the first must be found
// without it.
func TestAuditStopsAJobThatWaitsForItsInput(t *testing.T) {
	s := newSetup(t, "", func(j *jobs.Job) { j.Input.Path = jobs.Path{Name: jobs.StdinPath, File: jobs.StdinPath} })
	newAudit(s, 100)
	s.Engine = &fakeEngine{lanes: 4, script: func(q *engine.Request) ([]int32, error) {
		ids, err := echo(q)
		return append([]int32{'X'}, ids[1:]...), err
	}}
	s.Folder.Close()
	synctest.Test(t, func(t *testing.T) { // where all goroutines wait for ever, it says so
		in, feed := io.Pipe()
		s.Stdin = in
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.Admit = ctx
		defer feed.Close()
		go feed.Write([]byte(prompts(1)))
		var ended atomic.Bool
		go func() {
			synctest.Wait() // nothing moves any more
			if !ended.Load() {
				t.Error("the run waits for a row")
			}
			cancel()
		}()
		_, err := Run(ctx, s)
		ended.Store(true)
		var d *Difference
		if !errors.As(err, &d) || d.Row != 0 || d.Position != 0 {
			t.Errorf("got %v, want a difference in row 0", err)
		}
	})
}

// TestAuditFindsALongerReply compares lengths too.
func TestAuditFindsALongerReply(t *testing.T) {
	s := newSetup(t, `{"custom_id":"a","prompt":"q","max_tokens":5}`, nil)
	newAudit(s, 100)
	s.Engine = &fakeEngine{lanes: 1, script: func(q *engine.Request) ([]int32, error) {
		ids, err := echo(q)
		return ids[:4], err
	}}
	_, err := Run(t.Context(), s)
	want := `audit: row "a", reply 0: token 4 is none, plain decoding gives id `
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestPickedIsEven holds that a share of the rows is about that share.
func TestPickedIsEven(t *testing.T) {
	for _, percent := range []float64{0, 1, 25, 100} {
		n := 0
		for i := range 10000 {
			if picked(fmt.Sprint("row-", i), share(percent)) {
				n++
			}
		}
		if want := int(100 * percent); n < want-100 || n > want+100 {
			t.Errorf("%v%% of 10000 rows are %d", percent, n)
		}
	}
}
