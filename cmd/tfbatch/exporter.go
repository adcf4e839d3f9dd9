package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tfbatch/internal/metrics"
)

// loopback is where we listen unless another address is written out: nobody else reaches us there.
const loopback = "127.0.0.1"

// metricsPath is where Prometheus looks.
const metricsPath = "/metrics"

// How long one request may take, and how long the end waits for those that run.
const (
	requestTime  = 10 * time.Second
	shutdownTime = time.Second
)

// maxRequestHead is far above what a scraper sends.
const maxRequestHead = 16 << 10

// listenAddress reads "9464", ":9464" or "10.0.0.1:9464".
func listenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "", text
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 || strings.ContainsAny(port, "+-") {
		return "", fmt.Errorf("is %q, want a port, which is open to %s only, or an address as 10.0.0.1:9464", text, loopback)
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(host, port), nil
}

// exporter shows the jobs of this process to Prometheus. A nil exporter shows nothing.
type exporter struct {
	server *http.Server
	ended  sync.WaitGroup

	mu   sync.Mutex
	jobs []*live
}

// serveMetrics listens on the address of the settings, if there is one. The caller closes the exporter.
func (a *app) serveMetrics() (*exporter, error) {
	if a.set.metricsAddr == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", a.set.metricsAddr)
	if err != nil {
		return nil, refused(fmt.Errorf("--metrics-addr: %w; choose another port", err))
	}
	e := &exporter{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsPath, e.show)
	e.server = &http.Server{
		Handler: mux, MaxHeaderBytes: maxRequestHead,
		ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: 6 * requestTime,
	}
	e.ended.Go(func() { _ = e.server.Serve(listener) }) // it ends by close alone
	if !a.set.quiet {
		fmt.Fprintf(a.stderr, "measurements on http://%s%s\n", listener.Addr(), metricsPath)
	}
	return e, nil
}

// add shows a job's run from now on, after its end too.
func (e *exporter) add(l *live) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs = append(e.jobs, l)
}

func (e *exporter) close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if e.server.Shutdown(ctx) != nil {
		_ = e.server.Close() // who still reads has had its time
	}
	e.ended.Wait()
}

func (e *exporter) show(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	jobs := e.jobs[:len(e.jobs):len(e.jobs)]
	e.mu.Unlock()
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = metrics.WriteText(w, measured(jobs)) // its reader has gone
}

// measured is what there is to say of jobs.
func measured(jobs []*live) []metrics.Family {
	list := []metrics.Family{
		{Name: "tfbatch_build_info", Kind: metrics.Gauge, Help: "1; the version is a label",
			Values: []metrics.Value{{Labels: []metrics.Label{{Name: "version", Text: version()}}, Value: 1}}},
		{Name: "process_resident_memory_bytes", Kind: metrics.Gauge, Help: "Resident memory size in bytes.",
			Values: []metrics.Value{{Value: float64(residentMemory())}}},
	}
	readings := make([]reading, len(jobs))
	for i, l := range jobs {
		readings[i] = l.read()
	}
	for _, m := range jobMetrics {
		f := metrics.Family{Name: m.name, Kind: m.kind, Help: m.help}
		for i, l := range jobs {
			f.Values = append(f.Values, metrics.Value{Labels: []metrics.Label{{Name: "job", Text: l.job}}, Value: m.value(l, &readings[i])})
		}
		list = append(list, f)
	}
	return append(list,
		byDepth("tfbatch_guessed_tokens_total", "guesses that were verified, by their depth in the round", jobs, func(i int) []int64 { return readings[i].stats.Guessed[:] }),
		byDepth("tfbatch_kept_tokens_total", "guesses that were kept, by their depth in the round", jobs, func(i int) []int64 { return readings[i].stats.Kept[:] }))
}

// jobMetrics have one value for a job.
var jobMetrics = []struct {
	name  string
	kind  metrics.Kind
	help  string
	value func(*live, *reading) float64
}{
	{"tfbatch_rows", metrics.Gauge, "rows of the input: an estimate until it was read, 0 when not known", func(_ *live, r *reading) float64 { return float64(r.Total) }},
	{"tfbatch_rows_done", metrics.Gauge, "rows that are done, by earlier runs too", func(_ *live, r *reading) float64 { return float64(r.Rows) }},
	{"tfbatch_rows_failed", metrics.Gauge, "rows of these that failed", func(_ *live, r *reading) float64 { return float64(r.Errors) }},
	{"tfbatch_lanes", metrics.Gauge, "replies that can run at once", func(l *live, _ *reading) float64 { return float64(l.lanes) }},
	{"tfbatch_lanes_busy", metrics.Gauge, "replies that are running", func(_ *live, r *reading) float64 { return float64(r.active) }},
	{"tfbatch_lane_seconds_total", metrics.Counter, "time of all lanes while a reply ran on them", func(_ *live, r *reading) float64 { return r.laneTime.Seconds() }},
	{"tfbatch_tokens_total", metrics.Counter, "tokens of replies that this run drew", func(_ *live, r *reading) float64 { return float64(r.stats.Tokens) }},
	{"tfbatch_prompt_tokens_total", metrics.Counter, "prompt tokens that this run fed", func(_ *live, r *reading) float64 { return float64(r.stats.PrefillTokens) }},
	{"tfbatch_forwards_total", metrics.Counter, "forwards of the model", func(_ *live, r *reading) float64 { return float64(r.stats.Rounds) }},
	{"tfbatch_forward_seconds_total", metrics.Counter, "time of the forwards", func(_ *live, r *reading) float64 { return r.stats.Forward.Seconds() }},
	{"tfbatch_device_seconds_total", metrics.Counter, "of that, what the device worked by its own clock; 0 where it has none", func(_ *live, r *reading) float64 { return r.stats.Busy.Seconds() }},
}

// byDepth has a value for each depth that was reached.
func byDepth(name, help string, jobs []*live, counts func(job int) []int64) metrics.Family {
	f := metrics.Family{Name: name, Kind: metrics.Counter, Help: help}
	for i, l := range jobs {
		for depth, n := range counts(i) {
			if n > 0 || depth == 0 {
				f.Values = append(f.Values, metrics.Value{Labels: []metrics.Label{{Name: "job", Text: l.job}, {Name: "depth", Text: strconv.Itoa(depth + 1)}}, Value: float64(n)})
			}
		}
	}
	return f
}
