package main

import (
	"errors"
	"fmt"
	"testing"

	"tfbatch/internal/engine"
	"tfbatch/stages"
)

// TestCodesOfDrafting holds the exit codes that no honest device gives a script.
func TestCodesOfDrafting(t *testing.T) {
	for want, err := range map[int]error{
		exitDiffers: classed(fmt.Errorf("job a: %w", &stages.Difference{ID: "x"})),
		exitRefused: uneven(fmt.Errorf("guesses: %w", engine.ErrUneven)),
	} {
		var c *coded
		if !errors.As(err, &c) || c.code != want {
			t.Errorf("%v: got %+v, want code %d", err, c, want)
		}
	}
	plain := errors.New("disk full")
	if !errors.Is(classed(plain), plain) || uneven(nil) != nil {
		t.Error("other errors are changed")
	}
}
