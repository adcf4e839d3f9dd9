package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Lengths counts lengths in tokens. The zero value is ready.
type Lengths struct {
	by    map[int]int64
	n     int64
	total int64
}

// Add takes a length in.
func (l *Lengths) Add(tokens int) {
	if l.by == nil {
		l.by = map[int]int64{}
	}
	l.by[tokens]++
	l.n++
	l.total += int64(tokens)
}

// at is the length that a share of all do not exceed.
func (l *Lengths) at(share float64) int {
	want := int64(math.Ceil(share * float64(l.n)))
	last := 0
	for _, tokens := range slices.Sorted(maps.Keys(l.by)) {
		last = tokens
		if want -= l.by[tokens]; want <= 0 {
			break
		}
	}
	return last
}

// mostBars is how many bars a histogram has.
const mostBars = 24

// edges cut the lengths into bars of one width, or of doubling widths where a few are far longer than most.
func (l *Lengths) edges() []int {
	least, most := l.at(0), l.at(1)
	if most > 40*max(1, l.at(0.5)) {
		out := []int{0}
		for edge := 1; out[len(out)-1] <= most; edge *= 2 {
			out = append(out, edge)
		}
		return out
	}
	width := 1
	for i := 0; least/width+mostBars <= most/width; i++ {
		width = int(nice(float64(width + 1)))
	}
	out := []int{least / width * width}
	for out[len(out)-1] <= most {
		out = append(out, out[len(out)-1]+width)
	}
	return out
}

// chart is the histogram.
func (l *Lengths) chart(id, title, unit string) chart {
	c := chart{id: id, title: title, unit: unit, columns: []string{"Tokens", unit, "Share"}}
	if l.n == 0 {
		return c
	}
	edges := l.edges()
	counts := make([]int64, len(edges)-1)
	for tokens, n := range l.by {
		i, found := slices.BinarySearch(edges, tokens)
		if !found {
			i--
		}
		counts[i] += n
	}
	values := make([]float64, len(counts))
	for i, n := range counts {
		values[i] = float64(n)
		c.table = append(c.table, []string{between(edges[i], edges[i+1]-1), count(n), share(n, l.n)})
	}
	c.bars(values, nice(slices.Max(values)), number, func(i int) string { return c.table[i][0] + " tokens: " + c.table[i][1] })
	c.label(len(counts), func(i int) string { return c.table[i][0] })
	c.text = fmt.Sprintf("%s tokens on average; half have at most %s, 95 %% at most %s, the longest %s.",
		number(float64(l.total)/float64(l.n)), count(int64(l.at(0.5))), count(int64(l.at(0.95))), count(int64(l.at(1))))
	return c
}

func between(from, to int) string {
	if from == to {
		return count(int64(from))
	}
	return count(int64(from)) + " – " + count(int64(to))
}
