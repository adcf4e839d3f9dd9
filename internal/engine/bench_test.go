package engine_test

import (
	"flag"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"tfbatch/internal/draft/dspark"
	"tfbatch/internal/engine"
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
