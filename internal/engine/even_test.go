package engine_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
	"tfbatch/internal/model"
)

// uneven is a made model whose logits are an ulp off where more than a number of rows run together.
type uneven struct {
	enginetest.Model
	most int
	wide *bool
}

func newUneven(most int) uneven {
	m, wide := small, new(bool)
	m.Logits = func(history uint64, row []float32) {
		small.Fill(history, row)
		if *wide {
			row[9] = math.Nextafter32(row[9], 100)
		}
	}
	return uneven{m, most, wide}
}

func (u uneven) NewState(s model.Shape) (model.State, error) {
	st, err := u.Model.NewState(s)
	return unevenState{st, u}, err
}

type unevenState struct {
	model.State
	of uneven
}

func (s unevenState) Forward(p backend.Pass, b *model.Batch) model.Out {
	*s.of.wide = len(b.IDs) > s.of.most
	return s.State.Forward(p, b)
}

// TestUnevenDeviceMayNotDraft refuses guesses where they could be seen, and only those.
func TestUnevenDeviceMayNotDraft(t *testing.T) {
	cfg := engine.Config{Lanes: 4, Pages: 4, Chunk: 8, Context: 64, Drafter: &draft.Copy{}}
	for _, v := range []struct {
		most   int
		depth  engine.Depth
		refuse bool
	}{{1, 1, true}, {7, 1, true}, {8, 1, false}, {4, 4, true}, {10, 4, true}, {20, 4, false}, {63, engine.Auto, true}, {1, 0, false}} {
		cfg.Depth = v.depth
		_, err := engine.New(enginetest.Device{}, newUneven(v.most), cfg)
		if errors.Is(err, engine.ErrUneven) != v.refuse || v.refuse != (err != nil) {
			t.Errorf("other bits past %d rows, depth %v: %v", v.most, v.depth, err)
		}
		if v.refuse && !strings.Contains(err.Error(), "logit 9 of row 0") {
			t.Errorf("the error does not say where: %v", err)
		}
	}
}
