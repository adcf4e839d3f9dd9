package dspark

import "testing"

// TestLaneOpenedWithinItsPromptIsAsOne opens a lane with the first part of a prompt, asks about it, tells the rest, and
// wants the guesses of a lane that knew all of it at once: the block of the first question left nothing behind.
func TestLaneOpenedWithinItsPromptIsAsOne(t *testing.T) {
	r := newRig(t, 1)
	for _, n := range []int{24, 255, 256, 262, 2144} {
		ids := randomIDs(n+1, uint64(n))
		want, first := r.inOneGo(r.d, 5, ids), r.inOneGo(r.d, 6, ids[:n-5])
		told := n - 5
		r.d.Open(0, ids[:told])
		r.watch(r.d, span{0, 0, ids[:told-1]})
		if got := answers(r.d, r.propose(r.d, 6, 0))[0]; !got.equal(first) {
			t.Errorf("prompt of %d: guesses %v within it, want %v", n, got.ids, first.ids)
		}
		r.d.Committed(0, ids[told:])
		if got := r.propose(r.d, 5, 0)[0]; len(got.IDs) > 0 {
			t.Errorf("prompt of %d: guesses %v before all of it was seen", n, got.IDs)
		}
		r.watch(r.d, span{0, told - 1, ids[told-1 : n]})
		if got := answers(r.d, r.propose(r.d, 5, 0))[0]; !got.equal(want) {
			t.Errorf("prompt of %d: guesses %v, in one go %v", n, got.ids, want.ids)
		}
		r.d.Release(0)
	}
}
