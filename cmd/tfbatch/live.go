package main

import (
	"slices"
	"sync"
	"time"

	"tfbatch/internal/engine"
	"tfbatch/internal/metrics"
	"tfbatch/stages"
)

// live is what other goroutines than the engine's see of a job's run.
type live struct {
	job   string
	lanes int
	meter *stages.Meter

	mu  sync.Mutex
	now moment
}

// moment is how far a run is: all of it counts from its start, but for what is active.
type moment struct {
	stats    engine.Stats
	active   int           // replies that are running
	laneTime time.Duration // of all lanes, while a reply ran on them
}

// watch lets l see every round of an engine, whose guesses d counts.
func (l *live) watch(eng *engine.Engine, d *stages.Drafting) {
	before := eng.Stats() // of other shards, on the same engine
	l.meter.Stepped = func(active int) {
		stats := eng.Stats().Since(before)
		d.Drafted, d.Accepted = stats.Drafted, stats.Accepted
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now.laneTime += time.Duration(active) * (spent(&stats) - spent(&l.now.stats))
		l.now.stats, l.now.active = stats, active
	}
}

// spent is the time of all rounds.
func spent(s *engine.Stats) time.Duration { return s.Forward + s.Draft + s.Host }

func (l *live) moment() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// tokens is how many were drawn, and how many replies are running.
func (l *live) tokens() (drawn int64, active int) {
	m := l.moment()
	return m.stats.Tokens, m.active
}

// reading is all that is known of a run at one time.
type reading struct {
	at time.Time
	moment
	stages.Reading
}

func (l *live) read() reading { return reading{time.Now(), l.moment(), l.meter.Read()} }

// since is what happened between was and r.
func (r *reading) since(was *reading, lanes int) metrics.Sample {
	s := metrics.Sample{
		End: r.at.UnixMilli(), Span: r.at.Sub(was.at).Milliseconds(),
		Rows: max(0, r.NewRows-was.NewRows), Errors: max(0, r.NewErrors-was.NewErrors),
		Tokens: r.stats.Tokens - was.stats.Tokens, PromptTokens: r.stats.PrefillTokens - was.stats.PrefillTokens, Rounds: r.stats.Rounds - was.stats.Rounds,
		LaneTime: (r.laneTime - was.laneTime).Milliseconds(), Lanes: lanes, RSS: residentMemory(),
	}
	if r.Exact {
		s.Total = r.Total
	}
	for depth, n := range r.stats.Guessed {
		if n > 0 {
			s.Guessed = append(s.Guessed, n-was.stats.Guessed[depth])
			s.Kept = append(s.Kept, r.stats.Kept[depth]-was.stats.Kept[depth])
		}
	}
	if !slices.ContainsFunc(s.Guessed, func(n int64) bool { return n > 0 }) {
		s.Guessed, s.Kept = nil, nil
	}
	return s
}

// record keeps measurements of a run in its folder until stop is called. A run goes on without them.
func (a *app) record(folder *stages.Folder, l *live) (stop func()) {
	log, err := metrics.Open(folder.MetricsPath(), !folder.Begun())
	if err != nil {
		a.log.Warn("no measurements are kept", "job", l.job, "error", err)
		return func() {}
	}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		defer log.Close()
		was := l.read()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			case <-time.After(log.Every()):
			}
			is := l.read()
			if err := log.Append(is.since(&was, l.lanes)); err != nil {
				a.log.Warn("no more measurements are kept", "job", l.job, "error", err)
				return
			}
			was = is
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}
