package gpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/metal/kernels"
	"tfbatch/quant"
)

// script is a driver that writes down what it is told, and fails on one thing.
type script struct {
	log  []string
	fail string
}

type scriptMemory int64

func (m *scriptMemory) Bytes() int64 { return int64(*m) }

var errScript = errors.New("out of order")

func (s *script) do(what string) error {
	s.log = append(s.log, what)
	if s.fail == what {
		return errScript
	}
	return nil
}

func (s *script) Name() string { return "script" }
func (s *script) Alloc(bytes int64) (kernels.Mem, error) {
	m := scriptMemory(bytes)
	return &m, s.do("alloc")
}
func (s *script) Upload(kernels.Mem, int64, []byte) error   { return s.do("upload") }
func (s *script) Download([]byte, kernels.Mem, int64) error { return s.do("download") }
func (s *script) Close() error                              { return s.do("close") }

func (s *script) Run(launches []kernels.Launch) error {
	for _, l := range launches {
		s.log = append(s.log, l.Kernel.Name)
	}
	return s.do("run")
}

// use opens a device and runs a pass with reads between its operators.
func use(s *script) error {
	d, err := New(s)
	if err != nil {
		return err
	}
	x, err := d.NewBuffer(3, 64)
	if err != nil {
		return err
	}
	w, err := d.NewWeight(backend.WeightShape{Experts: 1, Rows: 8, Cols: 64, Format: quant.Format{Kind: quant.BF16}})
	if err != nil {
		return err
	}
	m := quant.Matrix{Rows: 8, Cols: 64, Data: make([]byte, 1024)}
	if err := d.Fill(w, backend.Slot{}, m); err != nil {
		return err
	}
	out := make([]float32, 192)
	p := d.Begin()
	p.Embed(x, w, []int32{1, 2, 3})
	p.Read(out, x)
	p.Add(x, x, x)
	p.Add(x.Top(0), x.Top(0), x.Top(0))
	p.Read(out, x)
	p.Bias(x, x.Top(1))
	if err := p.Commit(context.Background()); err != nil {
		return err
	}
	return d.Close()
}

// TestReadsKeepTheirPlace wants reads where they were recorded, and no launch for no rows.
func TestReadsKeepTheirPlace(t *testing.T) {
	s := &script{}
	if err := use(s); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(s.log[slices.Index(s.log, "embed")-1:], " ")
	if want := "upload embed run download add run download bias run close"; got != want {
		t.Errorf("the driver was told %q, want %q", got, want)
	}
}

func TestDriverFailuresAreReported(t *testing.T) {
	for _, what := range []string{"alloc", "upload", "download", "run", "close"} {
		err := use(&script{fail: what})
		if !errors.Is(err, errScript) {
			t.Errorf("%s fails: got %v", what, err)
		}
		if what != "close" && (err == nil || !strings.HasPrefix(err.Error(), "script: ")) {
			t.Errorf("%s fails: %v does not name the device", what, err)
		}
	}
}

func TestSizesThatCannotBe(t *testing.T) {
	d, err := New(&script{})
	if err != nil {
		t.Fatal(err)
	}
	const huge = 1 << 40
	bf16 := quant.Format{Kind: quant.BF16}
	for name, try := range map[string]func() error{
		"buffer":       func() error { _, err := d.NewBuffer(huge, huge); return err },
		"empty buffer": func() error { _, err := d.NewBuffer(0, 4); return err },
		"weight": func() error {
			_, err := d.NewWeight(backend.WeightShape{Experts: 1, Rows: huge, Cols: huge, Format: bf16})
			return err
		},
		"experts": func() error {
			_, err := d.NewWeight(backend.WeightShape{Experts: 2000, Rows: 4, Cols: 64, Format: bf16})
			return err
		},
		"kv": func() error {
			_, err := d.NewKV(backend.KVShape{Layers: huge, Pages: huge, Heads: 1, Dim: 64})
			return err
		},
		"head": func() error { _, err := d.NewKV(backend.KVShape{Layers: 1, Pages: 1, Heads: 1, Dim: 512}); return err },
		"conv": func() error {
			_, err := d.NewConv(backend.ConvShape{Layers: 1, Lanes: huge, Channels: huge, Kernel: 3, Ring: 9})
			return err
		},
		"routes": func() error { _, err := d.NewRoutes(huge, 4); return err },
		"write past a buffer": func() error {
			b, err := d.NewBuffer(1, 4)
			if err != nil {
				t.Fatal(err)
			}
			return d.Write(b, make([]float32, 5))
		},
	} {
		if try() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
