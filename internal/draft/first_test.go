package draft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/backend"
)

// recorder guesses its own number for the lanes it knows, and writes down its calls.
type recorder struct {
	id    int32
	knows []int
	err   error
	calls []string
}

func (r *recorder) Open(lane int, prompt []int32) {
	r.calls = append(r.calls, fmt.Sprint("open ", lane, prompt))
}

func (r *recorder) Propose(_ context.Context, asks []Ask) error {
	var lanes []int
	for i := range asks {
		lanes = append(lanes, asks[i].Lane)
		if slices.Contains(r.knows, asks[i].Lane) {
			asks[i].IDs = append(asks[i].IDs, r.id)
			asks[i].Chance = append(asks[i].Chance, 0.5)
		}
	}
	r.calls = append(r.calls, fmt.Sprint("propose ", lanes))
	return r.err
}

func (r *recorder) Committed(lane int, ids []int32) {
	r.calls = append(r.calls, fmt.Sprint("committed ", lane, ids))
}

func (r *recorder) Release(lane int) { r.calls = append(r.calls, fmt.Sprint("release ", lane)) }

type watcher struct{ recorder }

func (w *watcher) Taps() []int { return []int{3} }

func (w *watcher) Watch(backend.Pass, backend.Buffer, backend.Rows) error {
	w.calls = append(w.calls, "watch")
	return nil
}

func TestFirstAsksSlowWhereQuickIsSilent(t *testing.T) {
	quick := &recorder{id: 1, knows: []int{0, 2}}
	slow := &watcher{recorder{id: 2, knows: []int{0, 1, 2}}}
	d := First(quick, slow)
	for lane := range 4 {
		d.Open(lane, []int32{9})
	}
	asks := []Ask{{Lane: 0}, {Lane: 1}, {Lane: 2}, {Lane: 3}}
	if err := d.Propose(context.Background(), asks); err != nil {
		t.Fatal(err)
	}
	want := []Ask{
		{Lane: 0, IDs: []int32{1}, Chance: []float32{0.5}},
		{Lane: 1, IDs: []int32{2}, Chance: []float32{0.5}},
		{Lane: 2, IDs: []int32{1}, Chance: []float32{0.5}},
		{Lane: 3},
	}
	if diff := cmp.Diff(want, asks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w, ok := d.(Watcher); !ok || !slices.Equal(w.Taps(), []int{3}) || w.Watch(nil, nil, backend.Rows{}) != nil {
		t.Error("it does not watch as its slow drafter does")
	}
	d.Committed(1, []int32{5, 6})
	d.Release(1)
	all := func(propose ...string) []string {
		calls := []string{"open 0 [9]", "open 1 [9]", "open 2 [9]", "open 3 [9]"}
		return append(append(calls, propose...), "committed 1 [5 6]", "release 1")
	}
	if diff := cmp.Diff(all("propose [0 1 2 3]"), quick.calls); diff != "" {
		t.Errorf("quick (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all("propose [1 3]", "watch"), slow.calls); diff != "" {
		t.Errorf("slow (-want +got):\n%s", diff)
	}
}

func TestFirstSparesSlowWhereItCan(t *testing.T) {
	quick, slow := &recorder{knows: []int{0}}, &recorder{}
	d := First(quick, slow)
	if _, ok := d.(Watcher); ok {
		t.Error("it watches, and neither drafter does")
	}
	if err := d.Propose(context.Background(), []Ask{{Lane: 0}}); err != nil || len(slow.calls) > 0 {
		t.Errorf("error %v, slow was called: %v", err, slow.calls)
	}
	quick.err = errors.New("broken")
	if err := d.Propose(context.Background(), []Ask{{Lane: 1}}); !errors.Is(err, quick.err) || len(slow.calls) > 0 {
		t.Errorf("error %v after quick's, slow was called: %v", err, slow.calls)
	}
	quick.err, slow.err = nil, errors.New("broken too")
	if err := d.Propose(context.Background(), []Ask{{Lane: 1}}); !errors.Is(err, slow.err) {
		t.Errorf("error %v, want slow's", err)
	}
}
