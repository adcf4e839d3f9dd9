package engine

import (
	"fmt"
	"math"
)

// drawer chooses tokens. It holds the scratch that the draws of all lanes share.
type drawer struct {
	kept []scored
	heap []scored
}

// voice is how one reply is drawn: its sampling, its random numbers and the ids it has seen.
type voice struct {
	Sampling
	stream stream
	bias   []biased
	tally  tally
	only   Constraint
}

// open makes v the voice of r. It reuses what v held.
func (v *voice) open(r *Request) {
	v.Sampling = r.Sampling
	v.stream = newStream(r.Sampling.Seed, r.Sample, r.Key)
	v.only = r.Only
	v.bias = v.bias[:0]
	for id, b := range r.Sampling.LogitBias {
		v.bias = append(v.bias, biased{id, b})
	}
	v.tally.reset()
	if v.penalises() {
		v.tally.prompt(r.Prompt)
	}
}

// heard takes a committed token into account.
func (v *voice) heard(id int32) {
	if v.penalises() {
		v.tally.add(id)
	}
}

// draw returns the token at position pos, or why the logits give none. The steps and their
// arithmetic are those of backend/ARITHMETIC.md, "Sampling". The logits become scratch.
func (d *drawer) draw(v *voice, pos int, logits []float32) (int32, error) {
	top, ok := argmax(logits)
	if !ok {
		return 0, fmt.Errorf("id %d at position %d is %v: %w", top, pos, logits[top], ErrNonfinite)
	}
	if v.adjusts() {
		v.adjust(logits)
		if top, ok = argmax(logits); !ok {
			return 0, fmt.Errorf("id %d at position %d is %v after penalties: %w", top, pos, logits[top], ErrNonfinite)
		}
	}
	if v.only != nil {
		allowed, err := v.only.Allowed()
		if err != nil {
			return 0, fmt.Errorf("at position %d: %w: %w", pos, ErrConstraint, err)
		}
		top = restrict(logits, allowed)
	}
	if v.Temperature == 0 {
		return top, nil
	}
	scale(logits, logits[top], v.Temperature)
	best := pick{stream: &v.stream, pos: uint32(pos), score: lowest}
	best.offer(top, 0) // the likeliest first: most others can be seen to lose
	if !v.filters(len(logits)) {
		best.offerAll(logits)
		return best.id, nil
	}
	for _, s := range d.filter(v, logits) {
		best.offer(s.id, s.z)
	}
	return best.id, nil
}

// restrict gives every id that is not allowed a logit that no draw can take, and returns the likeliest of the others,
// the lowest id of equals.
func restrict(logits []float32, allowed []uint64) (top int32) {
	top = -1
	for i, l := range logits {
		if allowed[i/64]>>(i%64)&1 == 0 {
			logits[i] = lowest
		} else if top < 0 || l > logits[top] {
			top = int32(i)
		}
	}
	return top
}

// scale turns logits into z = (logit - most) / temperature, which is at most 0.
func scale(logits []float32, most, temperature float32) {
	for i, l := range logits {
		logits[i] = (l - most) / temperature
	}
}

// pick is the best of the ids offered so far: the largest z + Gumbel, the lower id of equals.
type pick struct {
	stream *stream
	pos    uint32
	id     int32
	score  float32

	block uint32 // words are of this block, if any
	words [4]uint32
	have  bool
}

// offer compares id with the best. The two bounds only spare work: they are monotonic, so
// what they turn away could not even tie.
func (p *pick) offer(id int32, z float32) {
	if z+mostGumbel < p.score {
		return
	}
	if b := uint32(id) / 4; !p.have || b != p.block {
		p.block, p.words, p.have = b, p.stream.block(b, p.pos), true
	}
	w := p.words[id%4]
	if z+gumbelBound(w) < p.score {
		return
	}
	s := z + gumbel(w)
	if s > p.score || s == p.score && id < p.id {
		p.id, p.score = id, s
	}
}

func (p *pick) offerAll(z []float32) {
	for i, v := range z {
		p.offer(int32(i), v)
	}
}

// argmax returns the id of the largest logit, the lowest of equals; where a logit is NaN or
// infinite it returns that id, and false.
func argmax(logits []float32) (id int32, ok bool) {
	best, most := 0, float32(-math.MaxFloat32)
	for i, v := range logits {
		if v <= most && v >= -math.MaxFloat32 { // nearly all, and no NaN
			continue
		}
		if !(v >= -math.MaxFloat32 && v <= math.MaxFloat32) {
			return int32(i), false
		}
		best, most = i, v
	}
	return int32(best), true
}
