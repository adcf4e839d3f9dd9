// Package pipeline runs stages over bounded channels. It knows nothing of rows, language
// models, files or devices.
//
// Start with [Run]. A stage that fails cancels the context of all; a source that returns
// ends the run in order: each stage's input is closed once every worker before it is done.
package pipeline

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Stage is one step of a pipeline.
type Stage[T any] struct {
	Name    string
	Workers int // copies of Do that share the channels; 1 where order or a device matters
	// Do receives from in until it is closed and sends with [Send]. It must not close out,
	// and it owns each value from receiving it to sending it. The first stage's in is nil;
	// the last stage must send nothing. Do runs once per worker, each on its own goroutine.
	Do func(ctx context.Context, in <-chan T, out chan<- T) error
}

// errLeft is the broken promise of a stage that returns nil with its input still open.
var errLeft = errors.New("returned before its input was closed")

// Run connects the stages with channels of the given size and waits for all of them. It
// returns the first error, with the name of its stage; every other stage then sees its
// context cancelled.
func Run[T any](ctx context.Context, queue int, stages ...Stage[T]) error {
	g, ctx := errgroup.WithContext(ctx)
	var in chan T
	for _, s := range stages {
		out := make(chan T, queue)
		start(ctx, g, s, in, out)
		in = out
	}
	return g.Wait()
}

// start runs the workers of one stage and closes out behind the last of them.
func start[T any](ctx context.Context, g *errgroup.Group, s Stage[T], in <-chan T, out chan<- T) {
	workers, ctx := errgroup.WithContext(ctx)
	for range s.Workers {
		workers.Go(func() error { return work(ctx, s, in, out) })
	}
	g.Go(func() error {
		defer close(out)
		return workers.Wait()
	})
}

func work[T any](ctx context.Context, s Stage[T], in <-chan T, out chan<- T) error {
	if err := s.Do(ctx, in, out); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	if in == nil {
		return nil
	}
	if _, open := <-in; open {
		return fmt.Errorf("%s: %w", s.Name, errLeft)
	}
	return nil
}

// Send passes v on, or returns the context's error when the run is over. The value then
// still belongs to the caller.
func Send[T any](ctx context.Context, out chan<- T, v T) error {
	select {
	case out <- v:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
