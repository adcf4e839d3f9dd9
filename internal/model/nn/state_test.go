package nn

import (
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/internal/model"
)

var sizes = Config{
	Info:      model.Info{Arch: "test", Vocab: 100, Hidden: 64, Layers: 3, Context: 1000},
	HeadShape: model.HeadShape{Q: 4, KV: 2, Dim: 16},
	Types:     []string{model.ShortConv, model.FullAttention, model.ShortConv},
	Rope:      model.Rope{Theta: 1e4},
	FF:        128,
	Kernel:    3,
	MoE:       Experts{Count: 8, Width: 32, Router: backend.Router{TopK: 2}},
}

// counter is a CPU that adds up what it is asked for.
type counter struct {
	*cpu.Device
	bytes int64
}

func (c *counter) NewBuffer(rows, cols int) (backend.Buffer, error) {
	c.bytes += 4 * int64(rows) * int64(cols)
	return c.Device.NewBuffer(rows, cols)
}

func (c *counter) NewKV(s backend.KVShape) (backend.KV, error) {
	kv, err := c.Device.NewKV(s)
	c.bytes += kv.Bytes()
	return kv, err
}

func (c *counter) NewConv(s backend.ConvShape) (backend.Conv, error) {
	conv, err := c.Device.NewConv(s)
	c.bytes += conv.Bytes()
	return conv, err
}

func (c *counter) NewRoutes(rows, topK int) (backend.Routes, error) {
	c.bytes += int64(rows * topK * (4 + 4))
	return c.Device.NewRoutes(rows, topK)
}

func openCPU(t *testing.T) *cpu.Device {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestFootprintIsWhatAStateTakes(t *testing.T) {
	dense, plain := sizes, sizes
	dense.MoE = Experts{}
	plain.Kernel, plain.Types = 0, []string{model.FullAttention, model.FullAttention, model.FullAttention}
	shape := model.Shape{Lanes: 5, Pages: 12, Rows: 70, Heads: 9, Window: 4}
	tapped, wide := shape, shape
	tapped.Taps = []int{0, 2}
	wide.KVF32, wide.Heads, wide.Pages = true, 0, 2 // fewer positions than the model's limit
	for _, c := range []Config{sizes, dense, plain} {
		for _, s := range []model.Shape{shape, tapped, wide} {
			dev := &counter{Device: openCPU(t)}
			m, err := bind(dev, &c, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := m.Footprint(s)
			if _, err := m.NewState(s); err != nil {
				t.Fatal(err)
			}
			if dev.bytes != want {
				t.Errorf("%+v: footprint %d, took %d", s, want, dev.bytes)
			}
		}
	}
}

func TestShapesAreRefused(t *testing.T) {
	m, err := bind(openCPU(t), &sizes, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := model.Shape{Lanes: 1, Pages: 1, Rows: 4, Heads: 1, Window: 1}
	for want, change := range map[string]func(*model.Shape){
		"0 lanes":            func(s *model.Shape) { s.Lanes = 0 },
		"0 pages":            func(s *model.Shape) { s.Pages = 0 },
		"-1 rows":            func(s *model.Shape) { s.Rows = -1 },
		"0 window":           func(s *model.Shape) { s.Window = 0 },
		"1073741824 lanes":   func(s *model.Shape) { s.Lanes = 1 << 30 },
		"5 head rows of 4":   func(s *model.Shape) { s.Heads = 5 },
		"taps [0 3] are not": func(s *model.Shape) { s.Taps = []int{0, 3} },
		"taps [1 1] are not": func(s *model.Shape) { s.Taps = []int{1, 1} },
		"taps [2 1] are not": func(s *model.Shape) { s.Taps = []int{2, 1} },
		"taps [-1] are not":  func(s *model.Shape) { s.Taps = []int{-1} },
	} {
		s := good
		change(&s)
		if _, err := m.NewState(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// bare is a device without any extra.
type bare struct{ backend.Device }

func (b bare) Begin() backend.Pass { return barePass{b.Device.Begin()} }

type barePass struct{ backend.Pass }

func TestBindNamesWhatTheDeviceLacks(t *testing.T) {
	dev := bare{openCPU(t)}
	dense, plain := sizes, sizes
	dense.MoE = Experts{}
	plain.MoE, plain.Kernel, plain.Types = Experts{}, 0, []string{model.FullAttention, model.FullAttention, model.FullAttention}
	sparse := plain
	sparse.MoE = sizes.MoE
	for want, c := range map[string]Config{"no short convolution": dense, "no mixture of experts": sparse} {
		if _, err := bind(dev, &c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	m, err := bind(dev, &plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.NewState(model.Shape{Lanes: 1, Pages: 1, Rows: 1, Heads: 1, Window: 1, Taps: []int{0}})
	if err == nil || !strings.Contains(err.Error(), "no taps") {
		t.Errorf("error %v, want one of taps", err)
	}
}

// step places n rows of lane 0 from position at.
func step(s *state, at, n int) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	var r backend.Rows
	for i := range n {
		r.Lane, r.Pos = append(r.Lane, 0), append(r.Pos, int32(at+i))
	}
	s.advance(r)
	return false
}

func TestALaneGoesBackNoFurtherThanTheWindow(t *testing.T) {
	m, err := bind(openCPU(t), &sizes, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := m.NewState(model.Shape{Lanes: 2, Pages: 4, Rows: 100, Heads: 1, Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range []struct {
		at, n int
		fails bool
	}{{0, 50, false}, {50, 4, false}, {51, 4, false}, {52, 1, false}, {49, 1, true}, {51, 1, false}, {60, 1, true}, {0, 3, false}, {3, 1, false}, {5, 1, true}} {
		if got := step(st.(*state), move.at, move.n); got != move.fails {
			t.Errorf("%d rows at %d: fails %t, want %t", move.n, move.at, got, move.fails)
		}
	}
}
