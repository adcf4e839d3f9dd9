package cpu

import (
	"fmt"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/backend/backendtest"
)

func opener(o Options) func(testing.TB) backend.Device {
	return func(t testing.TB) backend.Device {
		d, err := Open(o)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return d
	}
}

// TestContract holds every instruction set and thread count to the same bits.
func TestContract(t *testing.T) {
	for _, k := range available() {
		counts := []int{1, 3}
		if k.isa == Portable {
			counts = []int{2} // the slow one
		}
		for _, threads := range counts {
			t.Run(fmt.Sprintf("%v/%d threads", k.isa, threads), func(t *testing.T) {
				backendtest.Run(t, opener(Options{Threads: threads, ISA: k.isa}))
			})
		}
	}
}
