package engine

import "math"

// landing is how often guesses come true, by drafter, by their depth and by what the drafter
// said of them. It is shared by the lanes of a class.
type landing struct {
	quick, slow [autoDepth][chanceBins]cell
	reach       [autoDepth]cell // of slow, whatever was said
}

type cell struct{ hits, tries float64 }

const (
	chanceBins   = 12
	lowestBin    = -4  // odds of 1 to 16 and less
	unsaid       = 0.5 // the chance of a guess of which the drafter says nothing
	trust        = 0.7 // share of a stated chance that is believed before it was seen
	trustTries   = 2   // tries that the belief counts as
	forgetAfter  = 256 // tries, at which old ones count half
	forgetReach  = 64
	deepestGuess = autoDepth - 1
)

func (g *landing) cell(slow bool, depth int, said float64) *cell {
	cells := &g.quick
	if slow {
		cells = &g.slow
	}
	return &cells[min(depth, deepestGuess)][binOf(said)]
}

// binOf is the bin of a stated chance, by the power of two of its odds: sure guesses differ by what is left to 1.
func binOf(said float64) int {
	_, power := math.Frexp(max(said, 1e-9) / max(1-said, 1e-9))
	return min(max(power-1-lowestBin, 0), chanceBins-1)
}

// classes of lanes: what lands where the likeliest token is taken says little of where tokens are drawn by chance.
const classes = 2

// class is that of the lane.
func (l *lane) class() int {
	if l.voice.Temperature > 0 {
		return 1
	}
	return 0
}

// of is the chance that a guess lands, given that those before it did.
func (g *landing) of(slow bool, depth int, said float64) float64 {
	c := g.cell(slow, depth, said)
	return (c.hits + trustTries*trust*said) / (c.tries + trustTries)
}

func (g *landing) saw(slow bool, depth int, said float64, hit bool) {
	g.cell(slow, depth, said).saw(hit, forgetAfter)
	if slow {
		g.reach[min(depth, deepestGuess)].saw(hit, forgetReach)
	}
}

func (c *cell) saw(hit bool, forget float64) {
	c.tries++
	if hit {
		c.hits++
	}
	if c.tries == forget {
		c.hits, c.tries = c.hits/2, c.tries/2
	}
}

// landed is how many of the slow drafter's guesses land for a lane, by how many there are. A depth that was not
// seen is believed to be like the one before.
func (g *landing) landed() (sum [autoDepth + 1]float64) {
	chance, all := unsaid, 1.0
	for d, c := range g.reach {
		chance = (c.hits + trustTries*chance) / (c.tries + trustTries)
		all *= chance
		sum[d+1] = sum[d] + all
	}
	return sum
}

// chanceOf is what the drafter said of guess j, made a probability.
func chanceOf(said []float32, j int) float64 {
	if j >= len(said) {
		return unsaid
	}
	if c := float64(said[j]); c > 0 { // not NaN
		return min(c, 1)
	}
	return 0
}

// trial is a lane's guesses on the way to their answer: the tokens that come, whether the
// guesses were verified or not. A guess after the first wrong one has no answer.
type trial struct {
	at     int // index of the first guessed token in the lane's ids
	ids    []int32
	said   []float64
	slow   bool
	class  int
	scored int
}

func (t *trial) end() { t.ids, t.said = t.ids[:0], t.said[:0] }

// begin takes up the guesses of s unless others are still unanswered.
func (t *trial) begin(at int, s *span) {
	if len(t.ids) > 0 {
		return
	}
	t.at, t.scored, t.slow, t.class = at, 0, s.slow, s.lane.class()
	t.ids = append(t.ids, s.guess...)
	for j := range s.guess {
		t.said = append(t.said, chanceOf(s.chance, j))
	}
}

// answer scores the guesses against a lane's ids as far as those go.
func (t *trial) answer(ids []int32, g *landing) {
	for t.scored < len(t.ids) && t.at+t.scored < len(ids) {
		hit := ids[t.at+t.scored] == t.ids[t.scored]
		g.saw(t.slow, t.scored, t.said[t.scored], hit)
		if t.scored++; !hit {
			t.end()
			return
		}
	}
	if t.scored == len(t.ids) {
		t.end()
	}
}
