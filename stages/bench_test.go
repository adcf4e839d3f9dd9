package stages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	"tfbatch/internal/engine"
)

// instant answers at once: what is measured is the way of a row around the model.
type instant struct {
	lanes  int
	active []*engine.Request
	done   []engine.Result
}

func (e *instant) Room(*engine.Request) bool { return len(e.active) < e.lanes }

func (e *instant) Admit(q *engine.Request) error {
	e.active = append(e.active, q)
	return nil
}

func (e *instant) Step(context.Context) ([]engine.Result, error) {
	e.done = e.done[:0]
	for _, q := range e.active {
		e.done = append(e.done, engine.Result{Request: q, Tokens: scripted, Finish: engine.FinishStop})
	}
	e.active = e.active[:0]
	return e.done, nil
}

// scripted is the reply to everything, of 64 tokens.
var scripted = append(fakeTokenizer{}.Encode(string(bytes.Repeat([]byte("word "), 12))+"end"), fakeEOS)

func manyRows(rows int) string {
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, "{\"custom_id\":\"id-%d\",\"messages\":[{\"role\":\"user\",\"content\":\"What is the %d-th question of this job?\"}]}\n", i, i)
	}
	return b.String()
}

// BenchmarkPipeline is the pipeline's own cost: rows from the input through journal and
// final files, with a model that takes no time.
func BenchmarkPipeline(b *testing.B) {
	const rows = 20000
	input := manyRows(rows)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := newSetup(b, input, nil)
		s.Engine = &instant{lanes: 64}
		b.StartTimer()
		if report, err := Run(b.Context(), s); err != nil || !report.Complete {
			b.Fatal(report, err)
		}
		b.StopTimer()
		closeFolder(b, s)
		if err := os.RemoveAll(OutputDir(&s.Job)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// TestMemoryIsFlat runs 100,000 rows (10,000 when short): what the job holds beyond a fixed
// window is a few words per row.
func TestMemoryIsFlat(t *testing.T) {
	rows := 100_000
	if testing.Short() {
		rows = 10_000
	}
	const (
		fixed  = 40 << 20
		perRow = 256 // a hash of the id, the place of the row, the maps' slack
	)
	s := newSetup(t, manyRows(rows), nil)
	s.Engine = &instant{lanes: 64}
	steps, peak := 0, uint64(0)
	s.Meter.Stepped = func(int) {
		if steps++; steps%200 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	report, err := Run(t.Context(), s)
	if err != nil || !report.Complete || report.Counts.Rows != int64(rows) || report.Counts.Errors != 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	if limit := uint64(fixed + perRow*rows); peak == 0 || peak > limit {
		t.Errorf("the heap held %d MiB, limit %d", peak>>20, limit>>20)
	}
	t.Logf("%d rows, heap at most %d MiB", rows, peak>>20)
}
