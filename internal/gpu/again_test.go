package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
)

// stoppable is a driver whose system stops the first runs.
type stoppable struct {
	script
	stops      int
	stage      kernels.Mem
	saved, put []string // what was copied, and put back
}

func (s *stoppable) Limits() Limits { return Limits{Work: 1 << 40, Again: 2} }

func (s *stoppable) Alloc(bytes int64) (kernels.Mem, error) {
	m, err := s.script.Alloc(bytes)
	if s.stage == nil {
		s.stage = m
	}
	return m, err
}

func (s *stoppable) Download(data []byte, _ kernels.Mem, at int64) error {
	s.saved = append(s.saved, fmt.Sprintf("%d at %d", len(data), at))
	return nil
}

func (s *stoppable) Upload(m kernels.Mem, at int64, data []byte) error {
	if m != s.stage {
		s.put = append(s.put, fmt.Sprintf("%d at %d", len(data), at))
	}
	return nil
}

func (s *stoppable) Run(launches []kernels.Launch) error {
	if s.stops--; s.stops >= 0 {
		return fmt.Errorf("%w: status 5", ErrStopped)
	}
	return s.script.Run(launches)
}

// opened is a device with what passes work on.
type opened struct {
	*Device
	x, y, z, bias backend.Buffer
	conv          backend.Conv
}

func openStoppable(t *testing.T, s *stoppable) opened {
	t.Helper()
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	o := opened{Device: d}
	for _, b := range []struct {
		to         *backend.Buffer
		rows, cols int
	}{{&o.x, 4, 8}, {&o.y, 4, 8}, {&o.z, 4, 24}, {&o.bias, 1, 8}} {
		if *b.to, err = d.NewBuffer(b.rows, b.cols); err != nil {
			t.Fatal(err)
		}
	}
	if o.conv, err = d.NewConv(backend.ConvShape{Layers: 2, Lanes: 2, Channels: 8, Kernel: 3, Ring: 4}); err != nil {
		t.Fatal(err)
	}
	return o
}

// convolve runs four rows of a lane of the ring, from a position on.
func (o opened) convolve(p backend.Pass, layer int, from int32, rows int) {
	w, err := o.NewBuffer(8, 3)
	if err != nil {
		panic(err)
	}
	r := backend.Rows{}
	for i := range int32(rows) {
		r.Lane, r.Pos = append(r.Lane, 1), append(r.Pos, from+i)
	}
	p.(backend.ConvPass).ShortConv(o.y.Top(rows), o.z.Top(rows), w, nil, o.conv, layer, r)
}

// TestWhatAPassOverwritesIsKept wants copies of what a pass that is run again would find changed, and no others.
func TestWhatAPassOverwritesIsKept(t *testing.T) {
	const layer, lane = 2 * 4 * 8 * 4, 4 * 8 * 4 // bytes of the ring
	for _, c := range []struct {
		name   string
		record func(o opened, p backend.Pass)
		want   string
	}{
		{"made anew", func(o opened, p backend.Pass) { p.Add(o.x, o.y, o.y); p.Add(o.x, o.x, o.y); p.Bias(o.x, o.bias) }, ""},
		{"in place", func(o opened, p backend.Pass) { p.Add(o.x, o.x, o.y) }, "128 at 0"},
		{"in place, twice", func(o opened, p backend.Pass) { p.Add(o.x, o.x, o.y); p.Add(o.x, o.x, o.y) }, "128 at 0"},
		{"bias", func(o opened, p backend.Pass) { p.Bias(o.x, o.bias) }, "128 at 0"},
		{"read before", func(o opened, p backend.Pass) { p.Add(o.x, o.y, o.y); p.Add(o.y, o.x, o.x) }, "128 at 0"},
		{"more rows than were made", func(o opened, p backend.Pass) {
			p.Add(o.x.Top(2), o.y.Top(2), o.y.Top(2))
			p.Add(o.x, o.x, o.y)
		}, "128 at 0"},
		{"a tap", func(o opened, p backend.Pass) {
			p.(backend.TapPass).Tap(o.z, o.x, 1)
			p.RMSNorm(o.z, o.z, o.bias, 1)
		}, "384 at 0"},
		{"a ring's next rows", func(o opened, p backend.Pass) { o.convolve(p, 1, 5, 2) }, ""},
		{"a ring's row", func(o opened, p backend.Pass) { o.convolve(p, 0, 5, 3) }, fmt.Sprintf("32 at %d", lane+3*32)},
		{"a ring's rows", func(o opened, p backend.Pass) { o.convolve(p, 1, 5, 4) }, fmt.Sprintf("32 at %d, 32 at %d", layer+lane, layer+lane+3*32)},
		{"a prompt's first rows", func(o opened, p backend.Pass) { o.convolve(p, 1, 0, 4) }, ""},
		{"a ring twice", func(o opened, p backend.Pass) { o.convolve(p, 1, 5, 1); o.convolve(p, 1, 6, 1) }, fmt.Sprintf("%d at %d", layer, layer)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &stoppable{stops: 1}
			o := openStoppable(t, s)
			p := o.Begin()
			c.record(o, p)
			if err := p.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.saved, ", "); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
			if got := strings.Join(s.put, ", "); got != c.want {
				t.Errorf("put back %q, want %q", got, c.want)
			}
		})
	}
}

func TestAStoppedPassRunsAgain(t *testing.T) {
	for _, c := range []struct {
		stops int
		want  string
	}{{0, ""}, {2, ""}, {3, "script: commit: stopped 3 times"}} {
		s := &stoppable{stops: c.stops}
		o := openStoppable(t, s)
		p := o.Begin()
		p.Add(o.x, o.y, o.y)
		err := p.Commit(t.Context())
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrStopped) || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%d stops: got %v, want %q", c.stops, err, c.want)
		}
	}
}
