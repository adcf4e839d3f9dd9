package dspark

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/draft"
	"tfbatch/internal/model"
	"tfbatch/loader"
	"tfbatch/quant"
)

var errFull = errors.New("no memory left")

// scarce is a device with memory for a number of weights, buffers and pools. It notes what it is asked after
// it has refused once.
type scarce struct {
	backend.Device
	left   int
	bytes  int64
	full   bool
	after  []string
	closed int
}

func (s *scarce) take(what string) error {
	if s.full {
		s.after = append(s.after, what)
	}
	if s.left--; s.left < 0 {
		s.full = true
		return errFull
	}
	return nil
}

func (s *scarce) NewWeight(shape backend.WeightShape) (backend.Weight, error) {
	if err := s.take("weight"); err != nil {
		return nil, err
	}
	return s.Device.NewWeight(shape)
}

func (s *scarce) NewBuffer(rows, cols int) (backend.Buffer, error) {
	if err := s.take("buffer"); err != nil {
		return nil, err
	}
	s.bytes += 4 * int64(rows) * int64(cols)
	return s.Device.NewBuffer(rows, cols)
}

func (s *scarce) NewKV(shape backend.KVShape) (backend.KV, error) {
	if err := s.take("kv"); err != nil {
		return nil, err
	}
	kv, err := s.Device.NewKV(shape)
	if err == nil {
		s.bytes += kv.Bytes()
	}
	return kv, err
}

func (s *scarce) Fill(w backend.Weight, at backend.Slot, m quant.Matrix) error {
	if s.full {
		s.after = append(s.after, "fill")
	}
	return s.Device.Fill(w, at, m)
}

func (s *scarce) Write(b backend.Buffer, data []float32) error {
	if s.full {
		s.after = append(s.after, "write")
	}
	return s.Device.Write(b, data)
}

func (s *scarce) Close() error {
	s.closed++
	return s.Device.Close()
}

// TestAllocationFailures refuse every allocation in turn. The load ends at once and by name, and what was
// made goes with the device, once.
func TestAllocationFailures(t *testing.T) {
	shape := Shape{Lanes: 2, Pages: 4}
	files := write(t, smallConfig(), tensors(), nil)
	for n := 0; ; n++ {
		dev := &scarce{Device: device(t), left: math.MaxInt}
		target := newLender(t, dev)
		c, err := Open(files, smallTarget, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dev.left, dev.bytes = n, 0
		d, _, err := c.Load(t.Context(), dev, target, shape, nil)
		if err == nil {
			if want := len(c.Plan.Weights) + len(c.Plan.Vectors) + 1 + len(d.buffers(&d.cfg, sizes{})); n != want {
				t.Errorf("%d allocations, want %d", n, want)
			}
			return
		}
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "drafter: ") || d != nil {
			t.Errorf("allocation %d: drafter %v, error %v", n, d, err)
		}
		if len(dev.after) > 0 {
			t.Errorf("after allocation %d failed the device was asked for %v", n, dev.after)
		}
		if err := dev.Close(); err != nil || dev.closed != 1 {
			t.Errorf("closed %d times: %v", dev.closed, err)
		}
	}
}

// TestFootprintIsWhatIsTaken compares it with what the device was asked for.
func TestFootprintIsWhatIsTaken(t *testing.T) {
	for _, shape := range []Shape{{Lanes: 1, Pages: 1}, {Lanes: 3, Pages: 7, KVF32: true}} {
		dev := &scarce{Device: device(t), left: math.MaxInt}
		target := newLender(t, dev)
		c, err := Open(write(t, smallConfig(), tensors(), nil), smallTarget, Options{})
		if err != nil {
			t.Fatal(err)
		}
		vectors := int64(0)
		for _, v := range c.Plan.Vectors {
			vectors += v.Bytes()
		}
		if _, _, err := c.Load(t.Context(), dev, target, shape, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Footprint(smallTarget, shape), dev.bytes-vectors; got != want {
			t.Errorf("footprint of %+v is %d, the device gave %d", shape, got, want)
		}
	}
}

// stranger is a model that lends nothing.
type stranger struct{ model.Model }

func (stranger) Info() model.Info { return model.Info{Arch: "stranger"} }

func TestLoadRefuses(t *testing.T) {
	dev := device(t)
	load := func(target model.Model, s Shape, edit func(loader.Tensor, []float32)) error {
		c, err := Open(write(t, smallConfig(), tensors(), edit), smallTarget, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Load(t.Context(), dev, target, s, nil)
		return err
	}
	planted := func(name string, x float64) func(loader.Tensor, []float32) {
		return func(t loader.Tensor, v []float32) {
			if t.Name == name {
				v[len(v)/2] = float32(x)
			}
		}
	}
	good := Shape{Lanes: 1, Pages: 1}
	for name, v := range map[string]struct {
		err  error
		want string
	}{
		"ends":      {load(stranger{}, good, nil), "stranger, does not lend"},
		"no lanes":  {load(newLender(t, dev), Shape{Pages: 1}, nil), "0 lanes and 1 pages"},
		"no pages":  {load(newLender(t, dev), Shape{Lanes: 1}, nil), "1 lanes and 0 pages"},
		"NaN":       {load(newLender(t, dev), good, planted("fc.weight", math.NaN())), `"fc.weight"`},
		"infinity":  {load(newLender(t, dev), good, planted("norm.weight", math.Inf(1))), `"norm.weight"`},
		"confident": {load(newLender(t, dev), good, planted("confidence_head.proj.weight", math.NaN())), `"confidence_head.proj.weight"`},
	} {
		if v.err == nil || !strings.Contains(v.err.Error(), v.want) {
			t.Errorf("%s: got error %v, want %s", name, v.err, v.want)
		}
	}
}

// TestNonfiniteScoresEndTheRun plants what no check of a file can see, in turn, in everything a score goes through.
func TestNonfiniteScoresEndTheRun(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, plant := range map[string]func(r *rig) error{
		"norm":         func(r *rig) error { return r.dev.Write(r.d.norm, []float32{nan}) },
		"context norm": func(r *rig) error { return r.dev.Write(r.d.contextNorm, []float32{nan}) },
		"k norm":       func(r *rig) error { return r.dev.Write(r.d.layers[1].kNorm, []float32{nan}) },
		"infinity":     func(r *rig) error { return r.dev.Write(r.d.norm, []float32{inf}) },
		"confidence":   func(r *rig) error { r.d.sure.bias = nan; return nil },
		"staged taps":  func(r *rig) error { r.d.stage.data[3] = nan; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			ids := randomIDs(10, 1)
			r.d.Open(0, ids)
			r.watch(r.d, span{0, 0, ids[:9]})
			if err := plant(r); err != nil {
				t.Fatal(err)
			}
			err := r.d.Propose(t.Context(), []draft.Ask{{Lane: 0, Most: 3}})
			if !errors.Is(err, draft.ErrNonfinite) || !strings.Contains(err.Error(), "lane 0") {
				t.Errorf("got error %v, want a non-finite score of lane 0", err)
			}
		})
	}
}

func TestBest(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []struct {
		scores []float32
		at     int32
		ok     bool
	}{
		{[]float32{1}, 0, true},
		{[]float32{1, 3, 2, 3}, 1, true},
		{[]float32{-5, -5}, 0, true},
		{[]float32{0, float32(math.Copysign(0, -1))}, 0, true},
		{[]float32{math.MaxFloat32, -math.MaxFloat32}, 0, true},
		{[]float32{1, nan, 2}, 0, false},
		{[]float32{nan}, 0, false},
		{[]float32{inf, 1}, 0, false},
		{[]float32{1, -inf}, 0, false},
	} {
		if at, ok := best(v.scores); ok != v.ok || ok && at != v.at {
			t.Errorf("best of %v is %d, %t, want %d, %t", v.scores, at, ok, v.at, v.ok)
		}
	}
}

func TestCancelledProposalEnds(t *testing.T) {
	r := newRig(t, 1)
	r.d.Open(0, []int32{1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.d.Propose(ctx, []draft.Ask{{Lane: 0, Most: 3}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

// TestRoundsDoNotGrowMemory lets lanes come and go after a first round of everything.
func TestRoundsDoNotGrowMemory(t *testing.T) {
	r := newRig(t, 4)
	ids := randomIDs(600, 2)
	cycle := func() {
		for lane := range 4 {
			r.d.Open(lane, ids[:300])
			r.watch(r.d, span{lane, 0, ids[:300]})
		}
		for at := 300; at < 320; at++ {
			for lane := range 4 {
				r.d.Committed(lane, ids[at:at+1])
			}
			r.propose(r.d, 5, 0, 1, 2, 3)
			for lane := range 4 {
				r.watch(r.d, span{lane, at, ids[at : at+5]})
			}
		}
		for lane := range 4 {
			r.d.Release(lane)
		}
	}
	cycle()
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	for range 20 {
		cycle()
	}
	const noise = 64 << 10
	if more := live() - before; more > noise {
		t.Errorf("%d bytes more are alive after 20 cycles", more)
	}
}

// TestPairingsAgree turns heads half-split after their elements were put where interleaved pairs would be.
func TestPairingsAgree(t *testing.T) {
	r := newRig(t, 1)
	moved := r.load(write(t, with("rope_is_neox_style", true), tensors(), func(t loader.Tensor, x []float32) {
		if name := t.Name; strings.Contains(name, "q_proj") || strings.Contains(name, "k_proj") {
			part(x, 16*48, 48)
		} else if strings.Contains(name, "q_norm") || strings.Contains(name, "k_norm") {
			part(x, 16, 1)
		}
	}), 1, false)
	same := r.load(write(t, with("rope_is_neox_style", true), tensors(), nil), 1, false)
	ids := randomIDs(300, 4)
	r.inOneGo(r.d, 5, ids)
	want := make([]float64, len(r.d.round.hidden))
	for i, x := range r.d.round.hidden {
		want[i] = float64(x)
	}
	r.inOneGo(moved, 5, ids)
	near(t, "hidden rows", moved.round.hidden, want, 1e-4)
	r.inOneGo(same, 5, ids)
	if worst := off(same.round.hidden, want); worst < 1e-2 {
		t.Errorf("without the permutation they differ by no more than %.1e", worst)
	}
}

// part puts the even rows of every head first, then the odd ones.
func part(x []float32, head, row int) {
	for at := 0; at < len(x); at += head {
		h := slices.Clone(x[at : at+head])
		half := head / row / 2
		for i := range half {
			copy(x[at+i*row:], h[2*i*row:][:row])
			copy(x[at+(half+i)*row:], h[(2*i+1)*row:][:row])
		}
	}
}
