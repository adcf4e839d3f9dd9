package draft

import "context"

// Copy guesses that a lane goes on as it, or its prompt, once did after the same words:
// "prompt lookup". It costs no pass of the device. The longest earlier match of the lane's
// last tokens wins, the latest of equals. The zero value is ready.
//
// A lane whose copies miss several times in a row is left alone for a while, longer each
// time, since a verified row that misses is time lost.
type Copy struct {
	lanes []copied // by lane
}

const (
	gram      = 3  // tokens that an index entry stands for, and the least that can match
	minMatch  = 4  // shorter matches are mostly chance: two ids of syntax and a common word
	maxMatch  = 64 // longer ones promise no more
	maxProbes = 32 // earlier places looked at; bounds the work in text that repeats without end

	patience = 4   // misses in a row before a lane falls silent
	minRest  = 16  // rounds of the first silence
	maxRest  = 256 // rounds of the longest

	tableBits = 14 // heads of chains by hash: 64 KiB a lane; a collision costs a probe
)

// copied is a lane's text and an index of its grams: chains of places with one hash,
// the latest first.
type copied struct {
	ids  []int32
	head []int32 // by hash of a gram: the place of its last token, plus 1; 0 is none
	prev []int32 // by place: the earlier place in its chain, plus 1

	guess  []int32 // what was proposed and not yet answered
	misses int     // proposals in a row of which nothing was kept
	rest   int     // rounds of silence left
	pause  int     // length of the next silence
}

// Open indexes the prompt.
func (c *Copy) Open(lane int, prompt []int32) {
	for lane >= len(c.lanes) {
		c.lanes = append(c.lanes, copied{})
	}
	l := &c.lanes[lane]
	*l = copied{ids: l.ids[:0], head: l.head, prev: l.prev[:0], guess: l.guess[:0], pause: minRest}
	if l.head == nil {
		l.head = make([]int32, 1<<tableBits)
	}
	clear(l.head)
	l.extend(prompt)
}

// Propose copies what followed the best match of each lane.
func (c *Copy) Propose(_ context.Context, asks []Ask) error {
	for i := range asks {
		c.lanes[asks[i].Lane].propose(&asks[i])
	}
	return nil
}

// Committed scores the last proposal and indexes ids.
func (c *Copy) Committed(lane int, ids []int32) {
	l := &c.lanes[lane]
	l.score(ids)
	l.extend(ids)
}

// Release keeps the lane's memory for the next one.
func (c *Copy) Release(int) {}

func (l *copied) extend(ids []int32) {
	for _, id := range ids {
		l.ids = append(l.ids, id)
		last := len(l.ids) - 1
		if last < gram-1 {
			l.prev = append(l.prev, 0)
			continue
		}
		h := &l.head[hash(l.ids[last-gram+1:])]
		l.prev = append(l.prev, *h)
		*h = int32(last + 1)
	}
}

// hash of the first gram ids (multiplicative, the high bits of a product).
func hash(ids []int32) uint32 {
	h := uint64(0)
	for _, id := range ids[:gram] {
		h = (h + uint64(uint32(id)) + 1) * 0x9e3779b97f4a7c15
	}
	return uint32(h >> (64 - tableBits))
}

func (l *copied) propose(a *Ask) {
	l.guess = l.guess[:0]
	if l.rest > 0 {
		l.rest--
		return
	}
	at, length := l.match()
	if length < minMatch {
		return
	}
	period := len(l.ids) - 1 - at
	chance := float32(length) / float32(length+1)
	for i := range a.Most {
		if i < period {
			a.IDs = append(a.IDs, l.ids[at+1+i])
		} else { // past the end of the text: it goes on repeating itself
			a.IDs = append(a.IDs, a.IDs[i-period])
		}
		a.Chance = append(a.Chance, chance)
	}
	l.guess = append(l.guess, a.IDs...)
}

// match finds the longest text before the end that equals the end, and where it ends.
func (l *copied) match() (at, length int) {
	last := len(l.ids) - 1
	if last < 0 {
		return 0, 0
	}
	probes := 0
	for p := int(l.prev[last]) - 1; p >= 0 && probes < maxProbes && length < maxMatch; p = int(l.prev[p]) - 1 {
		if n := l.common(p, last); n > length {
			at, length = p, n
		}
		probes++
	}
	return at, length
}

// common counts the equal ids going back from places p and q, p < q, up to maxMatch.
func (l *copied) common(p, q int) int {
	n := 0
	for n <= p && n < maxMatch && l.ids[p-n] == l.ids[q-n] {
		n++
	}
	return n
}

// score looks whether the first guess came true; the rest stands or falls with it.
func (l *copied) score(ids []int32) {
	if len(l.guess) == 0 || len(ids) == 0 {
		return
	}
	if l.guess[0] == ids[0] {
		l.misses, l.pause = 0, minRest
		return
	}
	if l.misses++; l.misses == patience {
		l.misses, l.rest = 0, l.pause
		l.pause = min(2*l.pause, maxRest)
	}
}
