package engine

import (
	"cmp"
	"slices"
)

// nearby is how many tokens apart lanes still count as ending together: a few rounds bring them so far.
const nearby = 8

// weigh sets the weight of every span: what a token of its lane is worth, as a share of what it takes in a plain round.
// While other rows wait for a lane that is 1. Where none does, the time to the end is that of as many plain rounds with m
// lanes as the m-th longest is longer than the next, so a token of that lane spares the time by which a round of m lanes
// is longer than one of m-1: little where rows are cheap. How long a reply will be
// is not known; the most that it may still become stands for it.
func (g *ledger) weigh(r *round, spans []span) {
	for i := range spans {
		spans[i].weight = 1
	}
	if !r.idle || !g.probed.known {
		return
	}
	g.longest = g.longest[:0]
	for i := range spans {
		g.longest = append(g.longest, &spans[i])
	}
	slices.SortStableFunc(g.longest, func(a, b *span) int { return cmp.Compare(b.lane.remaining(), a.lane.remaining()) })
	each := g.probed.at(len(spans)) / float64(len(spans)) // of a token in a plain round
	for from := 0; from < len(g.longest); {
		to, end := from, g.longest[from].lane.remaining()-nearby
		for to < len(g.longest) && g.longest[to].lane.remaining() >= end {
			to++
		}
		shorter := 0.0 // the time of a round without these lanes
		if from > 0 {
			shorter = g.probed.at(from)
		}
		weight := min(max(g.probed.at(to)-shorter, 0)/float64(to-from)/each, 1)
		for _, s := range g.longest[from:to] {
			s.weight = weight
		}
		from = to
	}
}

// remaining is the most tokens that may still come.
func (l *lane) remaining() int { return l.limit - len(l.ids) }

// credit is the time that plain rounds would have taken for what r has brought, a plain one taking typical.
func (r *round) credit(spans []span, typical float64) float64 {
	sum := 0.0
	for i := range spans {
		sum += float64(spans[i].drawn) * spans[i].weight
	}
	return sum / float64(r.lanes) * typical
}
