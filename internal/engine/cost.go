package engine

import "slices"

// average is the mean of what was added, and later a moving one.
type average struct {
	v float64
	n int
}

// add counts x with at least the given weight.
func (a *average) add(x, weight float64) {
	a.n++
	a.v += (x - a.v) * max(weight, 1/float64(a.n))
}

// curve is the time of a round by its rows: measured ones, and straight lines between them.
type curve struct {
	decode   int       // rounds without prompt rows have no more rows
	measured []average // seconds, by rows
	line     []float64 // by rows, once fresh
	fresh    bool
}

const (
	curveRate = 0.1 // weight of a round among those with as many rows
	outlier   = 3   // a time further off than this factor counts as if it were not
	// While one number of rows was seen, more rows are guessed to cost half of proportional:
	// between a device bound by its weights, where they are free, and one bound by arithmetic.
	guessedSlope = 0.5
)

func newCurve(decode, rows int) curve {
	return curve{decode: decode, measured: make([]average, rows+1), line: make([]float64, rows+1)}
}

// observe takes the time of a round. One with prompt rows wants the logits of few rows, so
// it only anchors the curve beyond the rounds without.
func (c *curve) observe(r *round, seconds float64) {
	if r.prompt > 0 && r.rows <= c.decode {
		return
	}
	m := &c.measured[r.rows]
	if m.n > 0 {
		seconds = min(max(seconds, m.v/outlier), m.v*outlier)
	}
	m.add(seconds, curveRate)
	c.fresh = false
}

// at is the expected seconds of a round with n rows, 0 while nothing was measured.
func (c *curve) at(n int) float64 {
	if !c.fresh {
		c.draw()
	}
	return c.line[min(n, len(c.line)-1)]
}

// draw sets line from what was measured.
func (c *curve) draw() {
	c.fresh = true
	first := slices.IndexFunc(c.measured, func(m average) bool { return m.n > 0 })
	if first < 0 {
		return
	}
	for n := range first {
		c.line[n] = c.measured[first].v
	}
	last, slope := first, c.measured[first].v/float64(max(first, 1))*guessedSlope
	for n := first + 1; n < len(c.measured); n++ {
		if c.measured[n].n == 0 {
			continue
		}
		slope = (c.measured[n].v - c.measured[last].v) / float64(n-last)
		c.straight(last, n, slope)
		last = n
	}
	c.straight(last, len(c.line), max(slope, 0))
}

// straight draws the line from a measured number of rows up to another.
func (c *curve) straight(from, to int, slope float64) {
	for n := from; n < to; n++ {
		c.line[n] = c.measured[from].v + slope*float64(n-from)
	}
}

// plainTimes is the time of plain rounds with one number of lanes.
type plainTimes struct {
	recent [7]float64 // seconds; the middle one stands for all, so that one slow moment does not count
	n      int
	since  int // drafted rounds after the last one
}

// due reports whether the next round should be plain to keep the figure true.
func (p *plainTimes) due() bool { return p.n < 2 || p.since >= plainEvery-1 }

func (p *plainTimes) observe(seconds float64) {
	p.recent[p.n%len(p.recent)] = seconds
	p.n++
	p.since = 0
}

// typical is the lower median of the recent times.
func (p *plainTimes) typical() float64 {
	sorted := p.recent
	n := min(p.n, len(sorted))
	slices.Sort(sorted[:n])
	return sorted[max(n-1, 0)/2]
}
