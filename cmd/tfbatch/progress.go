package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tfbatch/stages"
)

// The ways to show progress.
const (
	progressAuto  = "auto"
	progressPlain = "plain"
	progressNone  = "none"
)

var progressKinds = []string{progressAuto, progressPlain, progressNone}

// How often progress is shown: a bar often enough to look alive, lines seldom enough for a log.
const (
	barEvery   = 200 * time.Millisecond
	plainEvery = 5 * time.Second
)

// barWidth leaves a terminal of 100 columns room for the text.
const barWidth = 16

// progress shows how far one job is, on stderr. Its methods are called from one goroutine.
type progress struct {
	name  string
	out   io.Writer
	kind  string // progressAuto means a bar here
	bar   *progressbar.ProgressBar
	done  chan struct{}
	ended sync.WaitGroup
}

func (a *app) newProgress(name string) *progress {
	p := &progress{name: name, out: a.stderr, kind: a.set.progress}
	if a.set.quiet || p.kind == progressAuto && !isTerminal(a.stderr) {
		p.kind = progressNone
	}
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// loading starts the progress of a load; the result hears of bytes, from one goroutine.
func (p *progress) loading(total int64) func(n int64) {
	if p.kind != progressAuto {
		return nil
	}
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.name+" loading"),
		progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(barWidth), progressbar.OptionThrottle(barEvery), progressbar.OptionClearOnFinish())
	return func(n int64) { _ = p.bar.Add64(n) } // a bar that cannot be drawn is no reason to stop
}

// running starts the progress of the rows. live tells of tokens drawn and replies running.
func (p *progress) running(m *stages.Meter, live func() (tokens int64, active int)) {
	if p.kind == progressNone {
		return
	}
	every := plainEvery
	if p.kind == progressAuto {
		_ = p.bar.Finish()
		every = barEvery
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(p.out), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetWidth(barWidth), progressbar.OptionClearOnFinish())
	}
	done, started := make(chan struct{}), time.Now()
	p.done = done
	p.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				tokens, active := live()
				p.show(m.Read(), tokens, active, time.Since(started))
			}
		}
	})
}

func (p *progress) show(r stages.Reading, tokens int64, active int, elapsed time.Duration) {
	text := statusText(r, tokens, active, elapsed)
	if p.kind == progressPlain {
		fmt.Fprintf(p.out, "%s: %s\n", p.name, text)
		return
	}
	if r.Total > 0 && p.bar.GetMax64() != r.Total {
		p.bar.ChangeMax64(r.Total)
	}
	_ = p.bar.Set64(min(r.Rows, p.bar.GetMax64()-1)) // a full bar would end itself
	p.bar.Describe(p.name + " " + text)
}

// statusText is one look at a run: "12/32 rows, 840 tokens/s, 16 running, ETA 5s".
func statusText(r stages.Reading, tokens int64, active int, elapsed time.Duration) string {
	total := "?"
	if r.Total > 0 {
		total = fmt.Sprint(r.Total)
		if !r.Exact {
			total = "~" + total
		}
	}
	rate := float64(tokens) / max(elapsed.Seconds(), 1e-3)
	text := fmt.Sprintf("%d/%s rows, %d errors, %.0f tokens/s, %d running", r.Rows, total, r.Errors, rate, active)
	if left, ok := remaining(r, tokens, rate); ok {
		text += ", ETA " + left.String()
	}
	return text
}

// remaining is the time that the rows still to come will take, by tokens: rows differ in
// length, and those that run have part of theirs already.
func remaining(r stages.Reading, tokens int64, rate float64) (time.Duration, bool) {
	if r.Rows == 0 || r.Total == 0 || rate == 0 {
		return 0, false
	}
	mean := float64(r.CompletionTokens) / float64(r.Rows)
	left := max(0, mean*float64(r.Total)-float64(r.Earlier+tokens))
	return time.Duration(left / rate * float64(time.Second)).Round(time.Second), true
}

// close ends the progress and clears the bar. It may be called twice.
func (p *progress) close() {
	if p.done != nil {
		close(p.done)
		p.done = nil
	}
	p.ended.Wait()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
