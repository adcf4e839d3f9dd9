package engine

// plane is the time of a drafter's pass by what it is asked for: a constant, a part for every lane, one for
// every link of the longest chain and one for every guess. The weights follow each time by the least change
// that explains it (Kaczmarz, 1937), so two depths in turn are soon both met.
type plane struct {
	weight [4]float64
	unit   wish // of the first time, to which the others are compared
	known  bool
}

// wish is what a drafter is asked for in a round.
type wish struct{ lanes, depth, guesses int }

// planeShares is how a first time is split among the four. Between a pass that
// is bound by weights, where more is free, and one bound by arithmetic.
var planeShares = [4]float64{0.5, 0.15, 0.15, 0.2}

const planeRate = 0.3 // share of a surprise that is learned

func (p *plane) features(w wish) [4]float64 {
	u := p.unit
	return [4]float64{
		1, float64(w.lanes) / float64(u.lanes), float64(w.depth) / float64(u.depth), float64(w.guesses) / float64(u.guesses),
	}
}

func (p *plane) observe(w wish, seconds float64) {
	if !p.known {
		p.known, p.unit = true, w
		for i, share := range planeShares {
			p.weight[i] = share * seconds
		}
		return
	}
	expected := p.at(w)
	seconds = min(max(seconds, expected/outlier), expected*outlier)
	x := p.features(w)
	norm := 0.0
	for i, share := range planeShares {
		norm += share * x[i] * x[i]
	}
	for i, share := range planeShares {
		p.weight[i] = max(p.weight[i]+planeRate*(seconds-expected)*share*x[i]/norm, 0)
	}
}

// at is the expected time of w, 0 while nothing was observed.
func (p *plane) at(w wish) float64 {
	if !p.known {
		return 0
	}
	sum := 0.0
	for i, x := range p.features(w) {
		sum += p.weight[i] * x
	}
	return sum
}
