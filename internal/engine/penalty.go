package engine

// biased is one entry of a logit bias.
type biased struct {
	id int32
	b  float32
}

// tally counts ids: how often in the reply, and which are in the prompt at all.
type tally struct {
	place map[int32]int
	seen  []counted
}

type counted struct {
	id    int32
	count int32 // in the reply
}

func (t *tally) reset() {
	clear(t.place)
	t.seen = t.seen[:0]
}

// prompt marks ids as seen.
func (t *tally) prompt(ids []int32) {
	for _, id := range ids {
		t.entry(id)
	}
}

// add counts an id of the reply.
func (t *tally) add(id int32) { t.entry(id).count++ }

func (t *tally) entry(id int32) *counted {
	i, ok := t.place[id]
	if !ok {
		if t.place == nil {
			t.place = make(map[int32]int)
		}
		i = len(t.seen)
		t.place[id] = i
		t.seen = append(t.seen, counted{id: id})
	}
	return &t.seen[i]
}

// penalises reports whether any penalty needs the tally.
func (v *voice) penalises() bool {
	return v.repeats() || v.PresencePenalty != 0 || v.FrequencyPenalty != 0
}

func (v *voice) repeats() bool { return v.RepetitionPenalty != 0 && v.RepetitionPenalty != 1 }

// adjusts reports whether adjust would change a logit.
func (v *voice) adjusts() bool { return len(v.tally.seen) > 0 || len(v.bias) > 0 }

// adjust applies the repetition penalty to the ids of prompt and reply, presence and
// frequency penalties to those of the reply, then the bias. Each id is worked on alone, so
// the order among ids is free.
func (v *voice) adjust(logits []float32) {
	for _, s := range v.tally.seen {
		l := logits[s.id]
		if v.repeats() {
			l = weaken(l, v.RepetitionPenalty)
		}
		if s.count > 0 {
			l -= float32(v.FrequencyPenalty * float32(s.count))
			l -= v.PresencePenalty
		}
		logits[s.id] = l
	}
	for _, b := range v.bias {
		logits[b.id] += b.b
	}
}

// weaken moves a logit down by a repetition penalty above 1 (Keskar et al., "CTRL", 2019,
// in the form of Hugging Face's RepetitionPenaltyLogitsProcessor).
func weaken(l, penalty float32) float32 {
	if l > 0 {
		return l / penalty
	}
	return l * penalty
}
