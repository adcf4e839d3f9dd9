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

// curve is a time by a count, such as that of a round by its rows: measured ones, and
// straight lines between them.
type curve struct {
	measured []average // seconds, by count
	line     []float64 // by count, once fresh
	fresh    bool
	known    bool // anything was measured
}

const (
	curveRate = 0.1 // weight of a time among those of its count
	// A time further off than this factor counts as if it were not: something else had the
	// machine.
	outlier = 3
	// Times go up in steps of up to step counts, so past the last count the line goes on as
	// it came over a longer stretch. Without one, more is guessed to cost half of proportional:
	// between a device bound by its weights, where it is free, and one bound by arithmetic.
	step         = 8
	guessedSlope = 0.5
)

func newCurve(most int) curve {
	return curve{measured: make([]average, most+1), line: make([]float64, most+1)}
}

// observe takes a time, and returns what it counted as.
func (c *curve) observe(n int, seconds float64) float64 {
	m := &c.measured[n]
	if m.n > 0 {
		seconds = min(max(seconds, m.v/outlier), m.v*outlier)
	}
	m.add(seconds, curveRate)
	c.fresh, c.known = false, true
	return seconds
}

// at is the expected time of n, 0 while nothing was measured.
func (c *curve) at(n int) float64 {
	if !c.fresh {
		c.draw()
	}
	return c.line[min(n, len(c.line)-1)]
}

// draw sets line from what was measured.
func (c *curve) draw() {
	c.fresh = true
	last := -1
	for n, m := range c.measured {
		if m.n == 0 {
			continue
		}
		if last < 0 {
			c.straight(0, n, m.v, 0)
		} else {
			c.straight(last, n, c.measured[last].v, (m.v-c.measured[last].v)/float64(n-last))
		}
		last = n
	}
	if last >= 0 {
		c.straight(last, len(c.line), c.measured[last].v, c.slope(last))
	}
}

// slope is how the line goes on past the last measured count.
func (c *curve) slope(last int) float64 {
	v := c.measured[last].v
	for n := last - step; n >= 0; n-- {
		if m := c.measured[n]; m.n > 0 {
			return max(v-m.v, 0) / float64(last-n)
		}
	}
	return guessedSlope * v / float64(max(last, 1))
}

// straight draws a line from v at one count up to another.
func (c *curve) straight(from, to int, v, slope float64) {
	for n := from; n < to; n++ {
		c.line[n] = v + slope*float64(n-from)
	}
}

// plainTimes is the time of plain rounds with one number of lanes.
type plainTimes struct {
	recent  [7]float64 // seconds
	typical float64    // the lower median of them, so that one slow moment does not count
	n       int
	since   int // drafted rounds after the last one
}

// due reports whether the next round should be plain to keep the figure true.
func (p *plainTimes) due() bool { return p.n < 2 || p.since >= plainEvery-1 }

func (p *plainTimes) observe(seconds float64) {
	p.recent[p.n%len(p.recent)] = seconds
	p.n++
	p.since = 0
	sorted := p.recent
	n := min(p.n, len(sorted))
	slices.Sort(sorted[:n])
	p.typical = sorted[(n-1)/2]
}

// references are the plain times of a number of lanes, by how long their texts are: attention makes rounds longer.
type references struct {
	times [contextBins]plainTimes
	first int // bin that was measured first, plus 1
}

const (
	contextBins  = 32
	contextWidth = 128 // positions of a bin; the last bin holds all beyond
)

func contextBin(context int) int { return min(context/contextWidth, contextBins-1) }

// at is the times of lanes with so many positions on average.
func (p *references) at(context int) *plainTimes { return &p.times[contextBin(context)] }

func (p *references) observe(context int, seconds float64) {
	if p.first == 0 {
		p.first = contextBin(context) + 1
	}
	p.at(context).observe(seconds)
}

// stretch is how much longer a plain round takes with such a context than with the one measured first, 1 where that
// is not known.
func (p *references) stretch(context int) float64 {
	here := p.at(context)
	if p.first == 0 || here.n == 0 {
		return 1
	}
	return here.typical / p.times[p.first-1].typical
}
