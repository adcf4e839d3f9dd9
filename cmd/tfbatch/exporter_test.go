package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tfbatch/internal/metrics"
	"tfbatch/stages"
)

func TestMetricsAddressIsLoopbackUnlessWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "0": "127.0.0.1:0", "0.0.0.0:9464": "0.0.0.0:9464", "[::1]:1": "[::1]:1",
		"localhost:80": "localhost:80", "x": "", "": "", "+1": "", "-1": "", "65536": "", "localhost": "", "::1:9": "", "127.0.0.1:": "", "127.0.0.1:http": "",
	} {
		got, err := listenAddress(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// serve shows jobs on a free port.
func serve(t *testing.T, jobs ...*live) (url string, close func()) {
	t.Helper()
	var stderr bytes.Buffer
	a := &app{stderr: &stderr}
	a.set.metricsAddr = "127.0.0.1:0"
	e, err := a.serveMetrics()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range jobs {
		e.add(l)
	}
	url = strings.TrimPrefix(strings.TrimSpace(stderr.String()), "measurements on ")
	return url, e.close
}

func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != metrics.ContentType {
		t.Errorf("%s: %s, %q", url, res.Status, got)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	list, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestExporterShowsJobsAndNothingElse reads the endpoint as Prometheus does, and looks for what must not be there.
func TestExporterShowsJobsAndNothingElse(t *testing.T) {
	one := &live{job: "a\"b", lanes: 16, meter: &stages.Meter{}}
	one.now.stats.Tokens, one.now.stats.Guessed[0], one.now.stats.Guessed[2], one.now.stats.Kept[0], one.now.active = 840, 7, 3, 5, 12
	url, done := serve(t, one, &live{job: "c", lanes: 4, meter: &stages.Meter{}})
	list := scrape(t, url)
	for name, want := range map[string]float64{"tfbatch_lanes": 16, "tfbatch_lanes_busy": 12, "tfbatch_tokens_total": 840, "tfbatch_rows_done": 0} {
		f := list[name]
		if f == nil || len(f.Metric) != 2 || f.Metric[0].Label[0].GetValue() != "a\"b" {
			t.Fatalf("%s is %v", name, f)
		}
		if got := f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue(); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	var depths []string
	for _, m := range list["tfbatch_guessed_tokens_total"].Metric {
		depths = append(depths, fmt.Sprint(m.Label[1].GetValue(), m.Label[0].GetValue(), m.Counter.GetValue()))
	}
	if got := strings.Join(depths, " "); got != `1a"b7 3a"b3 1c0` {
		t.Errorf("guesses by depth: %s", got)
	}
	for name, f := range list {
		if counter := f.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, f.GetType())
		}
	}
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars", "/metrics/x"} {
		res, err := http.Get(strings.TrimSuffix(url, "/metrics") + path)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	res, err := http.Post(url, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", res.Status)
	}
	done()
	if _, err := http.Get(url); err == nil {
		t.Error("it still answers")
	}
}

// TestExporterEndsUnderItsReaders: a reader that never reads does not hold up the end.
func TestExporterEndsUnderItsReaders(t *testing.T) {
	url, done := serve(t)
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n") // its head never ends
	ended := make(chan struct{})
	go func() { done(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it waits for a reader")
	}
}

// TestScrapedRun asks a run for its measurements while it runs, and reads the file of them behind it.
func TestScrapedRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"job.yaml":   "version: 1\njobs:\n  - { name: j, model: builtin:gopher-15m, input: { path: rows.jsonl }, sampling: { max_tokens: 4 } }\n",
		"rows.jsonl": strings.Repeat("{\"prompt\":\"x\"}\n", 1500),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("tfbatch", "run", "job.yaml", "--out", "out", "--metrics-addr", "0")
	c.Dir = dir
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }() // of a test that has failed
	in := bufio.NewReader(stderr)
	first, err := in.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "measurements on ")
	if err != nil || !ok {
		t.Fatalf("first line is %q, %v", first, err)
	}
	drawn := 0.0
	for drawn == 0 {
		if f := scrape(t, url)["tfbatch_tokens_total"]; f != nil {
			drawn = f.Metric[0].Counter.GetValue()
		}
	}
	rest, _ := io.ReadAll(in)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %s", err, rest)
	}
	f, err := os.Open(filepath.Join(dir, "out", "j", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	series, err := metrics.Read(f)
	if err != nil || series.Bad != 0 || len(series.Samples) == 0 {
		t.Fatalf("%v: %+v", err, series)
	}
	var all metrics.Sample
	for _, s := range series.Samples {
		all.Add(s)
	}
	if all.Rows != 1500 || all.Tokens < 1500 || float64(all.Tokens) < drawn || all.Rounds == 0 || all.LaneTime == 0 || all.PromptTokens < 1500 {
		t.Errorf("all samples: %+v", all)
	}
}
