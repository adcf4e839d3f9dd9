package metrics

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestPrometheusReadsTheText holds the text to Prometheus' own parser.
func TestPrometheusReadsTheText(t *testing.T) {
	hostile := "a\\b\"c\nd\x1b<script>{},= é\xff"
	families := []Family{
		{"x_total", Counter, "with a \\ and a\nnew line", []Value{
			{[]Label{{"job", hostile}, {"depth", "0"}}, 12345678901234567},
			{[]Label{{"job", "b"}, {"depth", "1"}}, 0.25},
		}},
		{"nothing", Gauge, "no value", nil},
		{"y", Gauge, "plain", []Value{{nil, math.Inf(1)}}},
	}
	var b strings.Builder
	if err := WriteText(&b, families); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	got, err := parser.TextToMetricFamilies(strings.NewReader(b.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(got) != 2 {
		t.Fatalf("%d families of\n%s", len(got), b.String())
	}
	x := got["x_total"]
	if x.GetType().String() != "COUNTER" || x.GetHelp() != families[0].Help || len(x.Metric) != 2 {
		t.Errorf("x_total is %v", x)
	}
	if l := x.Metric[0].Label; len(l) != 2 || l[0].GetValue() != strings.ToValidUTF8(hostile, "\uFFFD") || l[1].GetValue() != "0" {
		t.Errorf("labels are %v", l)
	}
	if v := x.Metric[0].Counter.GetValue(); v != 12345678901234567 {
		t.Errorf("value is %v", v)
	}
	if v := got["y"].Metric[0].Gauge.GetValue(); !math.IsInf(v, 1) {
		t.Errorf("y is %v", v)
	}
}

type fullWriter struct{}

var errFull = errors.New("full")

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

func TestTextTellsOfItsWriter(t *testing.T) {
	if err := WriteText(fullWriter{}, []Family{{"y", Gauge, "plain", []Value{{nil, 1}}}}); !errors.Is(err, errFull) {
		t.Errorf("error is %v", err)
	}
}
