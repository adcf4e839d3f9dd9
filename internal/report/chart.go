package report

import (
	"fmt"
	"math"
	"strings"
)

// The size of a drawing in its own units. It is stretched to its place, so its text stands beside it.
const (
	wide = 600
	high = 100
)

// chart is a drawing with the table behind it; without lines of that there is nothing to draw.
type chart struct {
	id, title, text, unit string
	y, x                  []string // labels, from the top and from the left
	path                  string   // of a line over time
	rects                 []rect
	across                []float64 // heights of lines across
	breaks                []float64 // places of lines from top to bottom
	columns               []string
	table                 [][]string
	each                  bool // a label in x is of a bar

	top float64 // value at the upper edge
}

type rect struct {
	x, y, w, h float64
	title      string
}

// scale sets the upper edge and labels the heights.
func (c *chart) scale(top float64, format func(float64) string) {
	c.top = top
	c.y = []string{format(c.top), format(c.top / 2), "0"}
}

// nice is the next of 1, 2, 2.5, 4, 5 and 8 times a power of ten: halves of it are short.
func nice(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 4, 5, 8} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// niceMemory is nice of whole MiB.
func niceMemory(v float64) float64 { return nice(v/(1<<20)) * (1 << 20) }

func (c *chart) height(v float64) float64 { return high - high*v/c.top }

// rule draws a line across.
func (c *chart) rule(v float64) { c.across = append(c.across, round(c.height(v))) }

// line draws values from the left edge to the right.
func (c *chart) line(values []float64, top float64, format func(float64) string) {
	c.scale(top, format)
	step := wide / float64(len(values))
	var b strings.Builder
	fmt.Fprintf(&b, "M0 %g", round(c.height(values[0])))
	for i, v := range values {
		fmt.Fprintf(&b, "L%g %g", round((float64(i)+0.5)*step), round(c.height(v)))
	}
	fmt.Fprintf(&b, "L%d %g", wide, round(c.height(values[len(values)-1])))
	c.path = b.String()
}

// bars draws values beside each other.
func (c *chart) bars(values []float64, top float64, format func(float64) string, title func(i int) string) {
	c.scale(top, format)
	step := wide / float64(len(values))
	for i, v := range values {
		y := c.height(v)
		if v > 0 {
			y = min(y, high-1) // a little is not nothing
		}
		c.rects = append(c.rects, rect{round((float64(i) + 0.08) * step), round(y), round(0.84 * step), round(high - y), title(i)})
	}
}

func round(v float64) float64 { return math.Round(100*v) / 100 }

// mostLabels is how many bars have a label each.
const mostLabels = 8

// label labels n bars: each, or the first, the middle and the last.
func (c *chart) label(n int, of func(i int) string) {
	c.each = n <= mostLabels
	for i := range n {
		if c.each || i == 0 || i == n/2 || i == n-1 {
			c.x = append(c.x, of(i))
		}
	}
}

// bar is the width of a bar in a table, of 100.
func bar(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return max(0.5, round(100*float64(part)/float64(whole)))
}
