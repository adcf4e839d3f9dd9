package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/engine"
	"tfbatch/internal/engine/enginetest"
	"tfbatch/internal/model"
)

// tape is what an engine asked of its device and its model, in order.
type tape struct {
	shape    model.Shape
	forwards []string // batches
	waits    int      // commits: each is a wait for the device
}

type tapedModel struct {
	enginetest.Model
	*tape
}

func (m tapedModel) NewState(s model.Shape) (model.State, error) {
	m.shape = s
	st, err := m.Model.NewState(s)
	return tapedState{st, m.tape}, err
}

type tapedState struct {
	model.State
	*tape
}

func (s tapedState) Forward(p backend.Pass, b *model.Batch) model.Out {
	s.forwards = append(s.forwards, fmt.Sprint(b.IDs, b.Rows.Lane, b.Rows.Pos, b.Heads, b.Taps))
	return s.State.Forward(p.(tapedPass).Pass, b)
}

type tapedDevice struct {
	enginetest.Device
	*tape
}

func (d tapedDevice) Begin() backend.Pass { return tapedPass{d.Device.Begin(), d.tape} }

type tapedPass struct {
	backend.Pass
	*tape
}

func (p tapedPass) Commit(ctx context.Context) error {
	p.waits++
	return p.Pass.Commit(ctx)
}

func taped(t *testing.T, cfg engine.Config, d enginetest.Device) (*engine.Engine, *tape) {
	t.Helper()
	tape := &tape{}
	now := time.Now
	if d.Clock != nil {
		now = d.Clock.Now
	}
	e, err := engine.NewAt(tapedDevice{d, tape}, tapedModel{small, tape}, cfg, now)
	if err != nil {
		t.Fatal(err)
	}
	return e, tape
}

// With drafting off the device is asked for what it is asked for without drafters, down to the shape of the state,
// and waited for once a round. The drafters are not called and every counter of theirs is zero.
func TestOffIsThePlainStream(t *testing.T) {
	rs := requests(20, engine.Sampling{Seed: 4, Temperature: 1})
	cfg := engine.Config{Lanes: 3, Pages: 6, Chunk: 50, Context: 512}
	e, plain := taped(t, cfg, enginetest.Device{})
	replies := run(t, e, rs)
	slow := &watching{scripted: scripted{t: t}} // its maps are nil: a call would panic
	quick := &scripted{t: t}
	cfg.Drafter, cfg.Quick, cfg.Depth = slow, quick, 0
	e, off := taped(t, cfg, enginetest.Device{})
	if diff := cmp.Diff(replies, run(t, e, rs)); diff != "" {
		t.Errorf("(-plain +off):\n%s", diff)
	}
	if diff := cmp.Diff(plain, off, cmp.AllowUnexported(tape{})); diff != "" {
		t.Errorf("other work for the device (-plain +off):\n%s", diff)
	}
	s := e.Stats()
	if calls := slow.calls + quick.calls; calls+int(s.Drafted+s.Accepted+s.Asked+s.Watched)+int(s.Draft) != 0 {
		t.Errorf("%d calls of drafters, %+v", calls, s)
	}
	if int64(off.waits) != s.Rounds || s.Rounds == 0 {
		t.Errorf("%d waits in %d rounds", off.waits, s.Rounds)
	}
}

// Where auto gives up on its drafters, a round is a plain one: the same rows, the same heads, no taps, one wait.
func TestRoundsWithoutGuessesArePlain(t *testing.T) {
	rs := long(1)
	cfg := engine.Config{Lanes: 1, Pages: 4, Chunk: 128, Context: 1024}
	e, plain := taped(t, cfg, enginetest.Device{})
	replies := run(t, e, rs)
	clock := &enginetest.Clock{}
	d := &watching{scripted: *scriptOf(t, "wrong", oracleOf(rs, replies)), seen: map[int]map[int32]int32{}, ids: map[int][]int32{}}
	cfg.Drafter, cfg.Quick, cfg.Depth = d, &draft.Copy{}, engine.Auto
	e, auto := taped(t, cfg, enginetest.Device{Clock: clock, Cost: devices["arithmetic"]})
	made := auto.waits // by the checks before the first round
	rounds := e.Stats().Rounds
	if diff := cmp.Diff(replies, run(t, e, rs)); diff != "" {
		t.Errorf("(-plain +auto):\n%s", diff)
	}
	s := e.Stats()
	if rounds != 0 || int64(auto.waits-made) != s.Rounds {
		t.Errorf("%d waits in %d rounds", auto.waits-made, s.Rounds)
	}
	same := map[string]bool{}
	for _, f := range plain.forwards {
		same[f] = true
	}
	other := 0
	for _, f := range auto.forwards[len(auto.forwards)-int(s.Rounds):] {
		if !same[f] {
			other++
		}
	}
	t.Logf("%d of %d rounds are not plain", other, s.Rounds)
	if limit := int(s.Rounds) / 20; other > limit || s.Watched == 0 {
		t.Errorf("%d of %d rounds are not plain, want no more than %d; %+v", other, s.Rounds, limit, s)
	}
}
