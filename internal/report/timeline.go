package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tfbatch/internal/metrics"
)

// timeline is the time that runs took, without that between them, cut into bins.
type timeline struct {
	parts  []part
	length int64 // of all parts, in ms
	bins   []bin
	sum    metrics.Sample
	lanes  float64 // the most that there were at once: shards run beside each other
}

// part is a time in which a run was at the job. It begins at, on the timeline.
type part struct{ from, to, at int64 }

// bin is what happened in one of the equal parts that a timeline is drawn in.
type bin struct {
	tokens, kept       float64
	laneTime, capacity float64 // of lanes in ms: in use, and there
	rss                int64
}

// The bins of a timeline: enough to see a minute of an hour, and each with several forwards, so that long forwards do
// not look like a comb.
const (
	mostBins      = 120
	forwardsInBin = 4
)

// newTimeline is nil where nothing was measured.
func newTimeline(s *metrics.Series) *timeline {
	if s == nil || len(s.Samples) == 0 {
		return nil
	}
	list := slices.Clone(s.Samples)
	slices.SortFunc(list, func(a, b metrics.Sample) int { return cmp.Compare(a.Start(), b.Start()) })
	t := &timeline{}
	slack := max(2*s.Every.Milliseconds(), 2000)
	for i := range list {
		t.sum.Add(list[i])
		t.take(&list[i], slack)
	}
	for i := range t.parts {
		t.parts[i].at = t.length
		t.length += t.parts[i].to - t.parts[i].from
	}
	if t.length == 0 {
		return nil
	}
	n := min(mostBins, len(list), int(max(1, t.sum.Rounds/forwardsInBin)), int(t.length))
	t.bins = make([]bin, n)
	for i := range list {
		t.spread(&list[i])
	}
	for i := range t.bins {
		t.lanes = max(t.lanes, math.Round(t.bins[i].capacity/t.width()))
	}
	return t
}

// take makes room for a sample; those before begin no later.
func (t *timeline) take(s *metrics.Sample, slack int64) {
	if n := len(t.parts); n > 0 && s.Start()-t.parts[n-1].to <= slack {
		t.parts[n-1].to = max(t.parts[n-1].to, s.End)
		return
	}
	t.parts = append(t.parts, part{from: s.Start(), to: s.End})
}

// at is the place of a time on the timeline.
func (t *timeline) at(ms int64) float64 {
	i, ok := slices.BinarySearchFunc(t.parts, ms, func(p part, ms int64) int { return cmp.Compare(p.from, ms) })
	if !ok {
		i = max(0, i-1)
	}
	p := t.parts[i]
	return float64(p.at + min(max(0, ms-p.from), p.to-p.from))
}

// spread gives each bin its share of a sample.
func (t *timeline) spread(s *metrics.Sample) {
	width := t.width()
	from, to := t.at(s.Start())/width, t.at(s.End)/width
	var kept int64
	for _, n := range s.Kept {
		kept += n
	}
	first := min(int(from), len(t.bins)-1)
	for i := first; i < len(t.bins) && (i == first || float64(i) < to); i++ {
		part := 1.0
		if to > from {
			part = (min(to, float64(i+1)) - max(from, float64(i))) / (to - from)
		}
		b := &t.bins[i]
		b.tokens += part * float64(s.Tokens)
		b.kept += part * float64(kept)
		b.laneTime += part * float64(s.LaneTime)
		b.capacity += part * float64(s.Span) * float64(s.Lanes)
		b.rss = max(b.rss, s.RSS)
	}
}

// width of a bin in ms.
func (t *timeline) width() float64 { return float64(t.length) / float64(len(t.bins)) }

// rate is a number of bin in a second.
func (t *timeline) rate(v float64) float64 { return 1000 * v / t.width() }

// busy is how many lanes were in use. A forward counts when it ends, so that a bin may get a little of the one before.
func (t *timeline) busy(b *bin) float64 { return min(b.laneTime, b.capacity) / t.width() }

// gain is how many tokens a forward of a lane gave.
func (b *bin) gain() float64 { return gain(b.tokens, b.kept) }

func gain(tokens, kept float64) float64 {
	if kept <= 0 || tokens <= kept {
		return 1
	}
	return tokens / (tokens - kept)
}

func (t *timeline) kept() (guessed, kept int64) {
	for depth, n := range t.sum.Guessed {
		guessed += n
		if depth < len(t.sum.Kept) {
			kept += t.sum.Kept[depth]
		}
	}
	return guessed, kept
}

// charts are what is drawn over time.
func (t *timeline) charts() []chart {
	if t == nil {
		return nil
	}
	rates := t.values(func(b *bin) float64 { return t.rate(b.tokens) })
	over := ""
	if n := len(t.parts) - 1; n > 0 {
		over = fmt.Sprintf(" %s between runs dashed, their time left out.", plural(int64(n), "break", "breaks"))
	}
	throughput := t.line("throughput", "Throughput", "tokens/s", rates, nice(slices.Max(rates)), number)
	throughput.rule(mean(rates))
	throughput.text = fmt.Sprintf("%s tokens/s on average while running, at most %s over %s.%s", number(mean(rates)), number(slices.Max(rates)), duration(int64(t.width())), over)
	busy := t.values(t.busy)
	lanes := t.line("lanes", "Lanes in use", "lanes", busy, t.lanes, number)
	lanes.text = fmt.Sprintf("%s of %s on average.", number(mean(busy)), plural(int64(t.lanes), "lane", "lanes"))
	out := []chart{throughput, lanes}
	if t.sum.RSS > 0 {
		rss := t.line("memory", "Memory", "bytes", t.values(func(b *bin) float64 { return float64(b.rss) }), niceMemory(float64(t.sum.RSS)), memory)
		rss.text = fmt.Sprintf("At most %s resident.", memory(float64(t.sum.RSS)))
		out = append(out, rss)
	}
	return out
}

// drafting is what is drawn of guesses.
func (t *timeline) drafting() []chart {
	if t == nil {
		return nil
	}
	guessed, kept := t.kept()
	if guessed == 0 {
		return nil
	}
	gains := t.values((*bin).gain)
	over := t.line("gain", "Drafting gain", "tokens per forward of a lane", gains, nice(slices.Max(gains)), number)
	over.rule(1)
	over.text = fmt.Sprintf("A forward of a lane gave %s tokens; without guesses it gives 1. %s forwards of a lane were spared.",
		digits(gain(float64(t.sum.Tokens), float64(kept))), count(kept))
	depth := chart{id: "depth", title: "Acceptance by depth", unit: "share of guesses kept", columns: []string{"Depth", "Guessed", "Kept", "Share"},
		text: fmt.Sprintf("%s of %s guesses were kept: %s. The first guess of a lane in a round has depth 1.", count(kept), count(guessed), share(kept, guessed))}
	var values []float64
	for i, n := range t.sum.Guessed {
		k := int64(0)
		if i < len(t.sum.Kept) {
			k = t.sum.Kept[i]
		}
		values = append(values, float64(k)/math.Max(1, float64(n)))
		depth.table = append(depth.table, []string{count(int64(i + 1)), count(n), count(k), share(k, n)})
	}
	depth.bars(values, 1, func(v float64) string { return digits(100*v) + " %" }, func(i int) string {
		return fmt.Sprintf("depth %d: %s of %s", i+1, depth.table[i][2], depth.table[i][1])
	})
	depth.label(len(values), func(i int) string { return fmt.Sprint(i + 1) })
	return []chart{over, depth}
}

func (t *timeline) values(of func(*bin) float64) []float64 {
	out := make([]float64, len(t.bins))
	for i := range t.bins {
		out[i] = of(&t.bins[i])
	}
	return out
}

// mostTimes is how many lines the table of a timeline has.
const mostTimes = 24

// line draws values over time.
func (t *timeline) line(id, title, unit string, values []float64, top float64, format func(float64) string) chart {
	c := chart{id: id, title: title, unit: unit, columns: []string{"Running time", unit}}
	c.line(values, top, format)
	for _, p := range t.parts[1:] {
		c.breaks = append(c.breaks, wide*float64(p.at)/float64(t.length))
	}
	c.x = []string{"0", duration(t.length / 2), duration(t.length)}
	step := (len(values) + mostTimes - 1) / mostTimes
	for i := 0; i < len(values); i += step {
		group := values[i:min(i+step, len(values))]
		c.table = append(c.table, []string{
			duration(int64(float64(i)*t.width())) + " – " + duration(int64(float64(i+len(group))*t.width())), format(mean(group)),
		})
	}
	return c
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + more
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
