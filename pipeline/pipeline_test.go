package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func source(n int) Stage[int] {
	return Stage[int]{Name: "source", Workers: 1, Do: func(ctx context.Context, _ <-chan int, out chan<- int) error {
		for i := range n {
			if err := Send(ctx, out, i); err != nil {
				return err
			}
		}
		return nil
	}}
}

func double(workers int) Stage[int] {
	return Stage[int]{Name: "double", Workers: workers, Do: func(ctx context.Context, in <-chan int, out chan<- int) error {
		for v := range in {
			if err := Send(ctx, out, 2*v); err != nil {
				return err
			}
		}
		return nil
	}}
}

func collect(into *[]int) Stage[int] {
	return Stage[int]{Name: "collect", Workers: 1, Do: func(_ context.Context, in <-chan int, _ chan<- int) error {
		for v := range in {
			*into = append(*into, v)
		}
		return nil
	}}
}

func TestEveryValueArrives(t *testing.T) {
	for _, workers := range []int{1, 7} {
		var got []int
		if err := Run(t.Context(), 2, source(1000), double(workers), collect(&got)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		for i, v := range got {
			if v != 2*i {
				t.Fatalf("%d workers: value %d is %d, want %d", workers, i, v, 2*i)
			}
		}
		if len(got) != 1000 {
			t.Fatalf("%d workers: %d values, want 1000", workers, len(got))
		}
	}
}

func TestFirstErrorEndsTheRun(t *testing.T) {
	broken := errors.New("disk full")
	fail := Stage[int]{Name: "fail", Workers: 1, Do: func(_ context.Context, in <-chan int, _ chan<- int) error {
		<-in
		return broken
	}}
	var got []int
	err := Run(t.Context(), 1, source(1<<30), fail, collect(&got))
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "fail: ") {
		t.Errorf("got %v, want the error of stage fail", err)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := Stage[int]{Name: "stop", Workers: 1, Do: func(ctx context.Context, in <-chan int, _ chan<- int) error {
		<-in
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	if err := Run(ctx, 1, source(1<<30), stop); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestEarlyReturnIsAnError(t *testing.T) {
	lazy := Stage[int]{Name: "lazy", Workers: 1, Do: func(context.Context, <-chan int, chan<- int) error { return nil }}
	if err := Run(t.Context(), 1, source(10), lazy); !errors.Is(err, errLeft) {
		t.Errorf("got %v, want %v", err, errLeft)
	}
}

// TestBoundedAhead holds back-pressure: with a queue of q and a sink that takes nothing,
// the source gets no further than the queues and one value per stage.
func TestBoundedAhead(t *testing.T) {
	const queue, n = 3, 100
	var sent atomic.Int64
	count := Stage[int]{Name: "count", Workers: 1, Do: func(ctx context.Context, _ <-chan int, out chan<- int) error {
		for i := range n {
			if err := Send(ctx, out, i); err != nil {
				return err
			}
			sent.Add(1)
		}
		return nil
	}}
	ahead := int64(0)
	sink := Stage[int]{Name: "sink", Workers: 1, Do: func(_ context.Context, in <-chan int, _ chan<- int) error {
		taken := int64(0)
		for range in {
			taken++
			ahead = max(ahead, sent.Load()-taken)
		}
		return nil
	}}
	if err := Run(t.Context(), queue, count, double(1), sink); err != nil {
		t.Fatal(err)
	}
	if limit := int64(2*queue + 2); ahead > limit {
		t.Errorf("the source was %d values ahead, limit %d", ahead, limit)
	}
}
