package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
	"tfbatch/internal/families"
	"tfbatch/internal/model"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
)

var (
	blocks   = flag.Int("blocks", 9, "BenchmarkAuto: blocks of each arm")
	replyLen = flag.Int("reply", 96, "BenchmarkAuto: tokens of a reply")
)

// cpuTime is what the process has used of the processors, which other processes cannot take from it.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAuto compares plain decoding of the builtin pair with drafted, in short blocks in turn: plain, plain
// again for the noise, and auto. The engines live on from block to block. Ratios are medians over blocks of the
// time of the first arm by that of another, of the wall and of the processors.
func BenchmarkAuto(b *testing.B) {
	p := openPair(b)
	for _, lanes := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			rs := repeat(questions(b), lanes)
			depths := []engine.Depth{0, 0, engine.Auto}
			var arms []*engine.Engine
			for _, depth := range depths {
				arms = append(arms, p.engine(b, lanes, depth, dspark.Options{Trim: true}))
			}
			for b.Loop() {
				compare(b, arms, rs)
			}
		})
	}
}

// repeat is n requests, IgnoreEOS and of one length, half of them sampled.
func repeat(some []*engine.Request, n int) []*engine.Request {
	var rs []*engine.Request
	for i := range n {
		r := *some[i%len(some)]
		r.Key, r.MaxTokens, r.Sampling.IgnoreEOS = fmt.Sprint(i), *replyLen, true
		rs = append(rs, &r)
	}
	return rs
}

func compare(b *testing.B, arms []*engine.Engine, rs []*engine.Request) {
	wall, busy := make([][]float64, len(arms)), make([][]float64, len(arms))
	for block := range *blocks + 1 {
		w, c := make([]float64, len(arms)), make([]float64, len(arms))
		for i := range arms {
			arm := (i + block) % len(arms)
			start, used := time.Now(), cpuTime(b)
			run(b, arms[arm], rs)
			w[arm], c[arm] = time.Since(start).Seconds(), (cpuTime(b) - used).Seconds()
		}
		if block == 0 { // cold
			continue
		}
		for arm := range arms {
			wall[arm], busy[arm] = append(wall[arm], w[0]/w[arm]), append(busy[arm], c[0]/c[arm])
		}
	}
	for arm, name := range []string{"", "plain", "auto"} {
		if name != "" {
			b.ReportMetric(median(wall[arm]), name+"-wall")
			b.ReportMetric(median(busy[arm]), name+"-cpu")
		}
	}
	s := arms[len(arms)-1].Stats()
	b.ReportMetric(float64(s.Watched)/float64(s.Rounds), "watched/round")
	b.ReportMetric(float64(s.Asked)/float64(s.Rounds), "asked/round")
	b.ReportMetric(1e3*arms[len(arms)-1].Balance().Seconds(), "ms-account")
	b.ReportMetric(float64(s.Tokens)/float64(s.Rounds*int64(len(rs))), "tokens/row")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// BenchmarkLargeModel decodes one lane of a made bf16 model in the shape of LFM2-350M, larger than any cache, with a
// drafter of no cost whose guesses land with a given probability. Beside the speed over plain it gives what the times
// of forwards of that many rows promise.
func BenchmarkLargeModel(b *testing.B) {
	if testing.Short() {
		b.Skip("writes and loads 0.7 GB")
	}
	dev, m := largeModel(b)
	times := forwardTimes(b, dev, m, 16)
	rs := requests(1, engine.Sampling{IgnoreEOS: true})
	rs[0].Prompt, rs[0].MaxTokens = prompt(1, 32), *replyLen
	open := func(d *noisy, depth engine.Depth) *engine.Engine {
		cfg := engine.Config{Lanes: 1, Pages: 4, Chunk: 64, Context: 512, Depth: depth}
		if d != nil {
			cfg.Quick = d
		}
		e, err := engine.New(dev, m, cfg)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	plain := open(nil, 0)
	oracle := oracleOf(rs, run(b, plain, rs))
	for _, right := range []float64{0.5, 0.7, 0.9} {
		for _, depth := range []engine.Depth{1, 2, 4, 8, engine.Auto} {
			b.Run(fmt.Sprintf("right=%v/%v", right, depth), func(b *testing.B) {
				d := &noisy{oracle: oracle, right: always(right), says: honest, clock: &enginetest.Clock{}, rng: rand.New(rand.NewPCG(1, 1)), lanes: map[int]*scriptedLane{}}
				e := open(d, depth)
				var ratios []float64
				for b.Loop() {
					ratios = append(ratios, seconds(b, plain, rs)/seconds(b, e, rs))
				}
				s := e.Stats()
				b.ReportMetric(median(ratios), "of-plain")
				b.ReportMetric(float64(s.Tokens)/float64(s.Rounds), "tokens/round")
				if depth > 0 {
					b.ReportMetric(expected(right, int(depth))*times[1]/times[1+depth], "promised")
				}
			})
		}
	}
}

func seconds(b *testing.B, e *engine.Engine, rs []*engine.Request) float64 {
	start := time.Now()
	run(b, e, rs)
	return time.Since(start).Seconds()
}

// expected is the tokens of a round with n guesses.
func expected(right float64, n int) float64 {
	sum, all := 1.0, 1.0
	for range n {
		all *= right
		sum += all
	}
	return sum
}

func largeModel(b *testing.B) (backend.Device, model.Model) {
	dir := b.TempDir()
	if err := modeltest.LFM2of350M().Write(dir, 1); err != nil {
		b.Fatal(err)
	}
	files, err := loader.Open(loader.Dir(dir))
	if err != nil {
		b.Fatal(err)
	}
	c, err := families.Open(files)
	if err != nil {
		b.Fatal(err)
	}
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	m, _, err := c.Load(b.Context(), dev, nil)
	if err != nil {
		b.Fatal(err)
	}
	return dev, m
}

// forwardTimes is the least seconds of a forward of a lane by its rows, all of whose logits are wanted.
func forwardTimes(b *testing.B, dev backend.Device, m model.Model, most int) []float64 {
	state, err := m.NewState(model.Shape{Lanes: 1, Pages: 1, Rows: most, Heads: most, Window: most})
	if err != nil {
		b.Fatal(err)
	}
	times := []float64{0}
	for n := 1; n <= most; n++ {
		batch := &model.Batch{Rows: backend.Rows{Pages: [][]int32{{0}}}}
		for pos := range n {
			batch.IDs, batch.Heads = append(batch.IDs, int32(pos)), append(batch.Heads, int32(pos))
			batch.Rows.Lane, batch.Rows.Pos = append(batch.Rows.Lane, 0), append(batch.Rows.Pos, int32(pos))
		}
		logits := make([]float32, n*m.Info().Vocab)
		var took []float64
		for range 5 {
			start := time.Now()
			p := dev.Begin()
			p.Read(logits, state.Forward(p, batch).Logits)
			if err := p.Commit(b.Context()); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start).Seconds())
		}
		times = append(times, slices.Min(took))
	}
	return times
}
