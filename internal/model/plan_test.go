package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
	"tfbatch/loader"
	"tfbatch/quant"
)

// checkpoint writes tensors whose elements are 1, 2, 3 … each, changed by edit where that is not nil.
func checkpoint(t *testing.T, edit func(t loader.Tensor, data []byte), tensors ...loader.Tensor) *loader.Snapshot {
	t.Helper()
	dir := t.TempDir()
	err := loader.Create(dir, tensors, 1<<20, func(t loader.Tensor, w io.Writer) error {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		data := make([]byte, n*int(t.DType.Size()))
		for i := range n {
			if t.DType == loader.F32 {
				binary.LittleEndian.PutUint32(data[4*i:], 0x3f800000+uint32(i)<<16)
			} else if t.DType.Size() == 2 {
				binary.LittleEndian.PutUint16(data[2*i:], 0x3f80+uint16(i))
			}
		}
		if edit != nil {
			edit(t, data)
		}
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := loader.Open(loader.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bf16(name string, shape ...int) loader.Tensor {
	return loader.Tensor{Name: name, DType: loader.BF16, Shape: shape}
}

func TestPlanRefuses(t *testing.T) {
	plan := func(p *Planner) {
		var w backend.Weight
		var b backend.Buffer
		p.Weight(&w, 4, Part{"q", 2}, Part{"k", 3})
		p.Vector(&b, Part{"gain", 4})
		p.Ignore("spare")
	}
	good := []loader.Tensor{bf16("q", 2, 4), bf16("k", 3, 4), bf16("gain", 4)}
	with := func(extra ...loader.Tensor) []loader.Tensor { return append(good[:3:3], extra...) }
	for name, c := range map[string]struct {
		tensors []loader.Tensor
		want    string
	}{
		"good":          {good, ""},
		"ignored":       {with(bf16("spare", 1)), ""},
		"harmless":      {with(bf16("model.layers.0.self_attn.rotary_emb.inv_freq", 1)), ""},
		"missing":       {good[:2], "1 tensors missing: gain"},
		"unknown":       {with(bf16("extra", 2)), "1 tensors that the model does not have: extra"},
		"shape":         {[]loader.Tensor{good[0], bf16("k", 4, 4), good[2]}, `tensor "k" is [4 4], the config makes it [3 4]`},
		"rank":          {[]loader.Tensor{good[0], good[1], bf16("gain", 4, 1)}, `tensor "gain" is [4 1], the config makes it [4]`},
		"type":          {[]loader.Tensor{good[0], good[1], {Name: "gain", DType: loader.U32, Shape: []int{4}}}, `tensor "gain" is U32`},
		"unlike parts":  {[]loader.Tensor{good[0], {Name: "k", DType: loader.F32, Shape: []int{3, 4}}, good[2]}, `tensor "k" is f32 and "q" is bf16`},
		"other tensors": {[]loader.Tensor{bf16("a", 1), bf16("b", 1)}, "2 tensors that the model does not have: a; b\n3 tensors missing: q; k; gain"},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlanner(checkpoint(t, nil, c.tensors...))
			plan(p)
			switch got, err := p.Plan(); {
			case c.want != "":
				wantError(t, err, c.want)
			case err != nil:
				t.Fatal(err)
			case got.Bytes() != 2*5*4+4*4:
				t.Errorf("plan of %d bytes", got.Bytes())
			}
		})
	}
}

func TestLongListsAreCut(t *testing.T) {
	p := NewPlanner(checkpoint(t, nil, bf16("a", 1)))
	var b backend.Buffer
	for i := range 500 {
		p.Vector(&b, Part{fmt.Sprintf("missing.%d", i), 1})
	}
	_, err := p.Plan()
	wantError(t, err, "500 tensors missing: missing.0; ")
	wantError(t, err, "and 490 more")
}

// record is a CPU that remembers what it was given.
type record struct {
	*cpu.Device
	fills    []string
	matrices []quant.Matrix
	writes   [][]float32
}

func (r *record) Fill(w backend.Weight, at backend.Slot, m quant.Matrix) error {
	s := w.Shape()
	r.fills = append(r.fills, fmt.Sprintf("{%d %d %d %v} %v [%d %d] from %x", s.Experts, s.Rows, s.Cols, s.Format, at, m.Rows, m.Cols, m.Data[:2]))
	m.Data = slices.Clone(m.Data) // they are the loader's again on return
	r.matrices = append(r.matrices, m)
	return r.Device.Fill(w, at, m)
}

func (r *record) Write(b backend.Buffer, data []float32) error {
	r.writes = append(r.writes, data)
	return r.Device.Write(b, data)
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

func loadPlan(t *testing.T, dev backend.Device, s *loader.Snapshot, plan func(*Planner)) error {
	t.Helper()
	p := NewPlanner(s)
	plan(p)
	planned, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var read int64
	c := &Checkpoint{Plan: planned, Tensors: s, Bind: func(backend.Device) (Model, error) { return nil, nil }}
	_, _, err = c.Load(t.Context(), dev, func(n int64) { read += n })
	if err == nil && read != s.Bytes() {
		t.Errorf("heard of %d bytes of %d", read, s.Bytes())
	}
	return err
}

func TestLoadFillsEverySlot(t *testing.T) {
	var joined, stacked, experts backend.Weight
	var gain, kernel backend.Buffer
	f32 := func(name string, shape ...int) loader.Tensor {
		return loader.Tensor{Name: name, DType: loader.F32, Shape: shape}
	}
	s := checkpoint(t, nil,
		bf16("v", 1, 4), bf16("k", 3, 4), bf16("q", 2, 4), // against the order of the slots
		bf16("stack", 2, 3, 2), f32("e1", 1, 2), f32("e0", 1, 2), bf16("b", 1), f32("a", 2), bf16("kernel", 3, 1, 2))
	dev := &record{Device: openCPU(t)}
	err := loadPlan(t, dev, s, func(p *Planner) {
		p.Weight(&joined, 4, Part{"q", 2}, Part{"k", 3}, Part{"v", 1})
		p.Stacked(&stacked, 2, 2, Part{"stack", 3})
		p.Experts(&experts, 2, 2, func(e int) []Part { return []Part{{fmt.Sprintf("e%d", e), 1}} })
		p.Vector(&gain, Part{"a", 2}, Part{"b", 1})
		p.Kernel(&kernel, 3, 2, "kernel")
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"{1 6 4 bf16} {0 5} [1 4] from 803f", "{1 6 4 bf16} {0 2} [3 4] from 803f", "{1 6 4 bf16} {0 0} [2 4] from 803f",
		"{2 3 2 bf16} {0 0} [3 2] from 803f", "{2 3 2 bf16} {1 0} [3 2] from 863f",
		"{2 1 2 f32} {1 0} [1 2] from 0000", "{2 1 2 f32} {0 0} [1 2] from 0000",
	}
	if got := strings.Join(dev.fills, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("fills\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if got := fmt.Sprint(dev.writes); got != "[[1 1.0078125 1] [1 1.0078125 1.015625 1.0234375 1.03125 1.0390625]]" {
		t.Errorf("vectors %s", got)
	}
	if joined == nil || stacked == nil || experts == nil || gain == nil || kernel == nil {
		t.Error("a handle is nil after the load")
	}
}

// TestLoadEncodes stores in 8 bits what fits, joined and stacked matrices too, and the rest as it is.
func TestLoadEncodes(t *testing.T) {
	var joined, stacked, odd backend.Weight
	eight := quant.Format{Kind: quant.Affine, Bits: 8, Group: 64}
	s := checkpoint(t, nil, bf16("q", 2, 128), bf16("k", 3, 128), bf16("stack", 2, 3, 64), bf16("odd", 2, 96))
	plan := func(p *Planner) {
		p.Encode(eight)
		p.Weight(&joined, 128, Part{"q", 2}, Part{"k", 3})
		p.Stacked(&stacked, 2, 64, Part{"stack", 3})
		p.Weight(&odd, 96, Part{"odd", 2})
	}
	dev := &record{Device: openCPU(t)}
	if err := loadPlan(t, dev, s, plan); err != nil {
		t.Fatal(err)
	}
	// Every tensor counts up from 1, so matrix i of a stack starts after the elements before it.
	for i, want := range []struct{ rows, cols, from int }{{2, 128, 0}, {3, 128, 0}, {3, 64, 0}, {3, 64, 3 * 64}} {
		m := quant.Matrix{Rows: want.rows, Cols: want.cols}
		for j := range want.rows * want.cols {
			m.Data = binary.LittleEndian.AppendUint16(m.Data, 0x3f80+uint16(want.from+j))
		}
		m, err := quant.Encode(m, eight)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, dev.matrices[i]); diff != "" {
			t.Errorf("fill %d (-want +got):\n%s", i, diff)
		}
	}
	if got, want := dev.fills[4], "{1 2 96 bf16} {0 0} [2 96] from 803f"; got != want {
		t.Errorf("what does not fit: %s, want %s", got, want)
	}
	p := NewPlanner(s)
	plan(p)
	planned, err := p.Plan()
	if want := int64(5*(128+2*2*2) + 6*(64+2*2) + 2*96*2); err != nil || planned.Bytes() != want {
		t.Errorf("plan of %d bytes, want %d: %v", planned.Bytes(), want, err)
	}
}

func TestLoadRefusesWhatIsNotFinite(t *testing.T) {
	for _, kind := range []loader.DType{loader.BF16, loader.F16, loader.F32} {
		for _, target := range []string{"w", "v"} {
			s := checkpoint(t, func(t loader.Tensor, data []byte) {
				if t.Name == target { // minus infinity in the last element
					copy(data[len(data)-2:], map[loader.DType][]byte{loader.BF16: {0x80, 0xff}, loader.F16: {0, 0xfc}, loader.F32: {0x80, 0xff}}[kind])
				}
			}, loader.Tensor{Name: "w", DType: kind, Shape: []int{3, 5}}, loader.Tensor{Name: "v", DType: kind, Shape: []int{3}})
			err := loadPlan(t, openCPU(t), s, func(p *Planner) {
				var w backend.Weight
				var v backend.Buffer
				p.Weight(&w, 5, Part{"w", 3})
				p.Vector(&v, Part{"v", 3})
			})
			wantError(t, err, fmt.Sprintf("model.safetensors: tensor %q", target))
			wantError(t, err, "holds a NaN or an infinity")
		}
	}
}
