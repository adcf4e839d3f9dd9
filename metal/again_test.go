package metal

import (
	"fmt"
	"reflect"
	"testing"

	"tfbatch/internal/families"
	"tfbatch/internal/model/modeltest"
	"tfbatch/loader"
	"tfbatch/metal/internal/check"
	"tfbatch/metal/kernels"
)

// TestAPassIsTheSameWhereverItIsStopped stops a pass after each of its launches in turn, half way through the next
// one, and wants the bits of one that was not stopped, in it and in the pass after it. A lane brings more rows than
// its ring of convolution inputs holds, so that the pass overwrites what it began with.
func TestAPassIsTheSameWhereverItIsStopped(t *testing.T) {
	f := newFake(t, checked{check.Open(library(t))})
	d := opened(t, f, limits{dispatch: 1 << 20, buffer: 1 << 21, launches: 7, again: 1})
	defer d.Close()
	snapshot, err := loader.Open(modeltest.Make(t, modeltest.Spec{
		Type: "lfm2_moe", Vocab: 97, Hidden: 32, Layers: "caca", Q: 4, KV: 2, Dim: 8, FF: 64, Kernel: 3, DType: loader.BF16,
		Experts: modeltest.Experts{Count: 4, TopK: 2, Width: 32, Dense: 1, Biased: true, Scale: 1},
	}, 1))
	if err != nil {
		t.Fatal(err)
	}
	c, err := families.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := c.Load(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	forwards := func(kill killer) (launches int, rows []modeltest.Rows) {
		lanes := modeltest.NewLanes(t, modeltest.Subject{Device: d, Model: m}, 2, 1, false)
		lanes.Forward(modeltest.Run{IDs: ids(5)}, modeltest.Run{Lane: 1, IDs: ids(3)})
		f.kill = func(l []kernels.Launch) (int, bool) {
			launches += len(l)
			return kill(l)
		}
		rows = append(rows, lanes.Forward(modeltest.Run{At: 5, IDs: ids(20)}, modeltest.Run{Lane: 1, At: 3, IDs: ids(1)}))
		f.kill = nil
		return launches, append(rows, lanes.Forward(modeltest.Run{At: 25, IDs: ids(1)}, modeltest.Run{Lane: 1, At: 4, IDs: ids(2)}))
	}
	n, want := forwards(func(l []kernels.Launch) (int, bool) { return len(l), true })
	for at := range n {
		for _, goesOn := range []bool{false, true} {
			t.Run(fmt.Sprintf("launch %d of %d, goes on %t", at, n, goesOn), func(t *testing.T) {
				ran, got := forwards(once(at, goesOn))
				if ran <= n/2 {
					t.Errorf("%d launches: nothing ran again", ran)
				}
				if !reflect.DeepEqual(got, want) {
					t.Error("other bits than without a stop")
				}
			})
		}
	}
}

func ids(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(7*i+n) % 97
	}
	return ids
}

// once stops the GPU after so many launches.
func once(at int, goesOn bool) killer {
	done := false
	return func(l []kernels.Launch) (int, bool) {
		if done || at >= len(l) {
			at -= len(l)
			return len(l), true
		}
		done = true
		return at, goesOn
	}
}
