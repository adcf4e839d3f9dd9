package engine

import (
	"math"

	"tfbatch/internal/backend"
)

// scored is an id with its z and, where it is needed, p = exp(z), its probability up to the
// common factor. The likeliest id has z = 0 and p = 1.
type scored struct {
	id   int32
	z, p float32
}

// before is the rank order: larger z first, then the lower id.
func (a scored) before(b scored) bool { return a.z > b.z || a.z == b.z && a.id < b.id }

// floorZ is where a probability counts as zero in top p and min p: exp(-17) is less than
// half a unit in the last place of the likeliest id's 1. It spares most of a vocabulary.
const floorZ = -17

// chains is the number of partial sums of the normaliser, by id modulo chains.
const chains = 32

// filters reports whether any id may be dropped.
func (v *voice) filters(vocab int) bool { return v.cutsTop(vocab) || v.weighs() }

func (v *voice) cutsTop(vocab int) bool { return v.TopK > 0 && v.TopK < vocab }

// weighs reports whether probabilities are needed.
func (v *voice) weighs() bool { return v.cutsMass() || v.MinP > 0 }

func (v *voice) cutsMass() bool { return v.TopP > 0 && v.TopP < 1 }

// filter returns the ids that survive top k, then top p, then min p, in no order.
func (d *drawer) filter(v *voice, z []float32) []scored {
	last := scored{id: int32(len(z)), z: lowest}
	if v.cutsTop(len(z)) {
		last = d.cut(z, v.TopK)
	}
	if !v.weighs() {
		return d.collect(z, last, lowest)
	}
	kept := d.collect(z, last, floorZ)
	for i := range kept {
		kept[i].p = backend.Exp(kept[i].z)
	}
	if v.cutsMass() {
		kept = d.nucleus(kept, v.TopP)
	}
	if v.MinP > 0 {
		kept = likely(kept, v.MinP)
	}
	return kept
}

var lowest = float32(math.Inf(-1))

// cut returns the kth id in rank order. [vocab] -> one
func (d *drawer) cut(z []float32, k int) scored {
	h := d.heap[:0]
	for i, v := range z[:k] {
		h = append(h, flip(scored{id: int32(i), z: v}))
	}
	order(h)
	worst := flip(h[0])
	for i := k; i < len(z); i++ {
		if z[i] > worst.z { // ids ascend, so an equal z ranks behind
			h[0] = flip(scored{id: int32(i), z: z[i]})
			sink(h, 0)
			worst = flip(h[0])
		}
	}
	d.heap = h
	return worst
}

// flip turns the rank order around.
func flip(s scored) scored { return scored{id: -s.id, z: -s.z} }

// collect returns the ids up to last in rank order whose z is at least floor, by id.
func (d *drawer) collect(z []float32, last scored, floor float32) []scored {
	kept := d.kept[:0]
	for i, v := range z {
		s := scored{id: int32(i), z: v}
		if v >= floor && !last.before(s) {
			kept = append(kept, s)
		}
	}
	d.kept = kept
	return kept
}

// nucleus keeps the ids, in rank order, until those before have topP of the whole mass
// (Holtzman et al., "The curious case of neural text degeneration", 2020). c is by id.
func (d *drawer) nucleus(c []scored, topP float32) []scored {
	enough := topP * mass(c)
	h := append(d.heap[:0], c...)
	d.heap = h
	order(h)
	kept := c[:0]
	for sum := float32(0); len(h) > 0 && (len(kept) == 0 || sum < enough); {
		s := h[0]
		kept = append(kept, s)
		sum += s.p
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		sink(h, 0)
	}
	return kept
}

// mass sums p in a fixed tree: chains by id, then halves.
func mass(c []scored) float32 {
	var sum [chains]float32
	for _, s := range c {
		sum[s.id%chains] += s.p
	}
	for half := chains / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return sum[0]
}

// likely keeps the ids with at least minP of the likeliest one's probability, which is 1 here.
func likely(c []scored, minP float32) []scored {
	kept := c[:0]
	for _, s := range c {
		if s.p >= minP {
			kept = append(kept, s)
		}
	}
	return kept
}

// order makes h a heap with the first in rank order on top.
func order(h []scored) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
}

// sink moves h[i] down to its place.
func sink(h []scored, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
