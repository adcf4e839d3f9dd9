package exactness

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/model"
)

// script guesses by the plain replies: what comes next, changed by turn. Of several replies to one prompt it follows
// the one that the lane has agreed with so far.
type script struct {
	known []said
	turn  func(right int32) int32
	lanes map[int]*reading
}

// said is a reply and what it was a reply to.
type said struct{ prompt, reply []int32 }

// reading is a lane that is followed: the replies to its prompt, and what it has said of them.
type reading struct {
	replies [][]int32
	said    []int32
}

// scripted are the arms that know the plain replies: all guesses right, all wrong, and any.
func scripted(known []said) []way {
	random := rand.New(rand.NewPCG(5, 6))
	var all []way
	for _, turn := range []struct {
		name string
		turn func(vocab, id int32) int32
	}{
		{"right", func(_, id int32) int32 { return id }},
		{"wrong", func(vocab, id int32) int32 { return (id + 1) % vocab }},
		{"random", func(vocab, _ int32) int32 { return random.Int32N(vocab) }},
	} {
		all = append(all, way{turn.name, func(_ *testing.T, _ backend.Device, m model.Model, c *engine.Config) {
			vocab := int32(m.Info().Vocab)
			c.Drafter = &script{known: known, lanes: map[int]*reading{}, turn: func(id int32) int32 { return turn.turn(vocab, id) }}
		}})
	}
	return all
}

func (s *script) Open(lane int, prompt []int32) {
	r := &reading{}
	for _, k := range s.known {
		if n := len(k.prompt); n <= len(prompt) && slices.Equal(k.prompt, prompt[:n]) {
			r.replies, r.said = append(r.replies, k.reply), slices.Clone(prompt[n:]) // the rest was said before it left
		}
	}
	s.lanes[lane] = r
}

func (s *script) Propose(_ context.Context, asks []draft.Ask) error {
	for i := range asks {
		a := &asks[i]
		for _, id := range s.lanes[a.Lane].next(a.Most) {
			a.IDs, a.Chance = append(a.IDs, s.turn(id)), append(a.Chance, 0.5)
		}
	}
	return nil
}

// next is up to n ids of the reply that begins with what was said.
func (r *reading) next(n int) []int32 {
	for _, reply := range r.replies {
		if len(reply) > len(r.said) && slices.Equal(reply[:len(r.said)], r.said) {
			rest := reply[len(r.said):]
			return rest[:min(n, len(rest))]
		}
	}
	return nil
}

func (s *script) Committed(lane int, ids []int32) {
	s.lanes[lane].said = append(s.lanes[lane].said, ids...)
}

func (s *script) Release(lane int) { delete(s.lanes, lane) }

// plainReplies makes the replies of requests without a drafter.
func plainReplies(t *testing.T, d backend.Device, m model.Model, requests []*engine.Request) []said {
	t.Helper()
	e, err := engine.New(d, m, engine.Config{Lanes: 16, Pages: pages, Chunk: 64, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	var out []said
	for r := range replies(t, e, requests) {
		out = append(out, said{r.Request.Prompt, r.Tokens})
	}
	return out
}
