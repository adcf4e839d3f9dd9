package dspark

import (
	"fmt"
	"testing"

	"tfbatch/internal/draft"
)

// BenchmarkPropose is a round of the builtin pair at a context of 256, with nothing staged.
func BenchmarkPropose(b *testing.B) {
	for _, lanes := range []int{1, 4, 8} {
		for _, most := range []int{1, 2, 4, 9} {
			b.Run(fmt.Sprintf("lanes=%d/most=%d", lanes, most), func(b *testing.B) {
				r := newRunner(b, lanes)
				asks := make([]draft.Ask, lanes)
				for lane := range lanes {
					ids := randomIDs(257, 1)
					r.d.Open(lane, ids)
					r.forward(span{lane, 0, ids[:256]})
				}
				for b.Loop() {
					for lane := range asks {
						asks[lane] = draft.Ask{Lane: lane, Most: most, IDs: asks[lane].IDs[:0], Chance: asks[lane].Chance[:0]}
					}
					if err := r.d.Propose(b.Context(), asks); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkTarget is a verifying forward of the target beside it.
func BenchmarkTarget(b *testing.B) {
	for _, rows := range []int{1, 2, 3, 5, 9} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			r := newRunner(b, 1)
			ids := randomIDs(300, 1)
			r.d.Open(0, ids)
			r.forward(span{0, 0, ids[:256]})
			for b.Loop() {
				r.step(span{0, 256, ids[256:][:rows]})
			}
		})
	}
}
