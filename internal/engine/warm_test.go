package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
	"tfbatch/internal/model"
)

var errScarce = errors.New("no memory left")

// scarce is a model, a device and a drafter that fail at one of the things an engine asks of them while it is made.
type scarce struct {
	left   int // how many go well
	failed bool
	after  []string // what was asked once one had failed
	open   map[int]int
	closed map[int]int
}

func (s *scarce) take(what string) error {
	if s.failed {
		s.after = append(s.after, what)
	}
	if s.left--; s.left < 0 {
		s.failed = true
		return errScarce
	}
	return nil
}

type scarceModel struct {
	enginetest.Model
	*scarce
}

func (m scarceModel) NewState(s model.Shape) (model.State, error) {
	if err := m.take("state"); err != nil {
		return nil, err
	}
	st, err := m.Model.NewState(s)
	return scarceState{st}, err
}

type scarceDevice struct {
	enginetest.Device
	*scarce
}

func (d scarceDevice) Begin() backend.Pass { return scarcePass{d.Device.Begin(), d.scarce} }

type scarcePass struct {
	backend.Pass
	*scarce
}

func (p scarcePass) Commit(ctx context.Context) error {
	if err := p.take("commit"); err != nil {
		return err
	}
	return p.Pass.Commit(ctx)
}

// scarceState hands the made model its own pass.
type scarceState struct{ model.State }

func (s scarceState) Forward(p backend.Pass, b *model.Batch) model.Out {
	return s.State.Forward(p.(scarcePass).Pass, b)
}

type scarceDrafter struct{ *scarce }

func (scarceDrafter) Taps() []int                { return []int{0} }
func (d scarceDrafter) Open(lane int, _ []int32) { d.open[lane]++ }
func (d scarceDrafter) Release(lane int)         { d.closed[lane]++ }
func (scarceDrafter) Committed(int, []int32)     {}

func (d scarceDrafter) Propose(context.Context, []draft.Ask) error { return d.take("propose") }

func (d scarceDrafter) Watch(backend.Pass, backend.Buffer, backend.Rows) error {
	return d.take("watch")
}

// TestFailuresBeforeTheFirstRow makes each thing fail that an engine needs before it can draft: the state, the
// forwards of the check and of the warm-up, the drafter's watch and its first guesses. The engine is refused at once
// and by name, and every lane that was opened for the warm-up is closed, once.
func TestFailuresBeforeTheFirstRow(t *testing.T) {
	for n := 0; ; n++ {
		s := &scarce{left: n, open: map[int]int{}, closed: map[int]int{}}
		cfg := engine.Config{Lanes: 3, Pages: 3, Chunk: 8, Context: 64, Depth: 4, Drafter: scarceDrafter{s}}
		e, err := engine.New(scarceDevice{enginetest.Device{}, s}, scarceModel{small, s}, cfg)
		if len(s.open) != len(s.closed) {
			t.Errorf("thing %d failed: %d lanes were opened, %d closed", n, len(s.open), len(s.closed))
		}
		for lane := range s.open {
			if s.open[lane] != 1 || s.closed[lane] != 1 {
				t.Errorf("thing %d failed: lane %d was opened %d times and closed %d times", n, lane, s.open[lane], s.closed[lane])
			}
		}
		if err == nil {
			if n < 1+5+2+2+8 || len(s.open) != 3 { // the state; rows alone and together; watch and its forward; guesses
				t.Errorf("%d things can fail, %d lanes were opened", n, len(s.open))
			}
			return
		}
		named := strings.HasPrefix(err.Error(), "state of ") || strings.HasPrefix(err.Error(), "guesses are refused: ") || strings.HasPrefix(err.Error(), "warm the drafter: ")
		if !errors.Is(err, errScarce) || !named || e != nil || len(s.after) > 0 {
			t.Errorf("thing %d failed: engine %v, error %v, then asked for %v", n, e, err, s.after)
		}
	}
}
