package modeltest

import (
	"io/fs"
	"maps"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

// Suite is what every family passes, on any device.
type Suite struct {
	Open   func(*loader.Snapshot) (*model.Checkpoint, error) // families.Open
	Device func() (backend.Device, error)
	Golden fs.FS // config.json, model.safetensors and golden.safetensors; below mlx the same by mlx-lm, below variants/* more

	// Random checkpoints of Base, of variations of it that every family has, and of each of Changes are
	// held against the float64 reference.
	Base    Spec
	Changes map[string]func(*Spec)
}

// variations are what every family can be.
func variations() map[string]func(*Spec) {
	return map[string]func(*Spec){
		"as it is":           func(*Spec) {},
		"untied":             func(s *Spec) { s.Untied = true },
		"biases":             func(s *Spec) { s.Bias = true },
		"older keys":         func(s *Spec) { s.OldKeys = true },
		"one head for all":   func(s *Spec) { s.KV = 1 },
		"heads wider than H": func(s *Spec) { s.Q, s.KV, s.Dim = 8, 8, 32 },
		"widths in no step":  func(s *Spec) { s.Vocab, s.Hidden, s.FF, s.Dim = 257, 70, 99, 22 },
		"f32 weights":        func(s *Spec) { s.DType = loader.F32 },
		"4 bits":             func(s *Spec) { s.Affine = Affine{Bits: 4, Group: 32} },
		"mixed bits":         func(s *Spec) { s.Affine = Affine{Bits: 3, Group: 32, Mixed: true} },
		"8 bits, f32 scales": func(s *Spec) { s.Hidden, s.Affine, s.DType = 128, Affine{Bits: 8, Group: 64}, loader.F32 },
		"as MLX has it":      func(s *Spec) { s.MLX = true },
		"4 bits by MLX":      func(s *Spec) { s.MLX, s.Affine = true, Affine{Bits: 4, Group: 32} },
	}
}

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	t.Run("golden", func(t *testing.T) { Golden(t, s.Load(t, s.Golden), s.Golden) })
	others, err := fs.Glob(s.Golden, "variants/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range others {
		t.Run(name, func(t *testing.T) {
			dir, err := fs.Sub(s.Golden, name)
			if err != nil {
				t.Fatal(err)
			}
			Golden(t, s.Load(t, dir), dir)
		})
	}
	t.Run("mlx", func(t *testing.T) {
		dir, err := fs.Sub(s.Golden, "mlx")
		if err != nil {
			t.Fatal(err)
		}
		MLX(t, s.Load(t, dir), dir)
	})
	t.Run("exact", func(t *testing.T) { Exact(t, s.Load(t, s.Golden)) })
	t.Run("exact/quantized", func(t *testing.T) {
		spec := s.Base
		spec.Affine = Affine{Bits: 4, Group: 32, Mixed: true}
		Exact(t, s.Load(t, Make(t, spec, 1)))
	})
	changes := variations()
	maps.Copy(changes, s.Changes)
	for name, change := range changes {
		t.Run("random/"+name, func(t *testing.T) {
			spec := s.Base
			change(&spec)
			s.random(t, spec)
		})
	}
}

// random makes a checkpoint, loads it and compares it with the reference.
func (s Suite) random(t *testing.T, spec Spec) {
	dir := Make(t, spec, 1)
	values, err := ReadValues(dir)
	if err != nil {
		t.Fatal(err)
	}
	against(t, s.Load(t, dir), &Reference{spec, spec.Values(values)})
}

// Same checks that checkpoints made of Base and of Base after change give the same bits.
func (s Suite) Same(t *testing.T, change func(*Spec)) {
	other := s.Base
	change(&other)
	a, b := s.Load(t, Make(t, s.Base, 1)), s.Load(t, Make(t, other, 1))
	ids := randomIDs(50, s.Base.Vocab, 9)
	same(t, "two checkpoints", NewLanes(t, a, 1, 1, false).Forward(Run{IDs: ids}), NewLanes(t, b, 1, 1, false).Forward(Run{IDs: ids}))
}

// Load loads the checkpoint in dir on a device of its own.
func (s Suite) Load(t *testing.T, dir fs.FS) Subject {
	t.Helper()
	snapshot, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := s.Device()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, digests, err := c.Load(t.Context(), dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(digests) != len(snapshot.Shards()) {
		t.Fatalf("%d digests of %d shards", len(digests), len(snapshot.Shards()))
	}
	return Subject{dev, m}
}

// Make writes a checkpoint of random weights and returns its folder.
func Make(t *testing.T, s Spec, seed uint64) fs.FS {
	t.Helper()
	dir := t.TempDir()
	if err := s.Write(dir, seed); err != nil {
		t.Fatal(err)
	}
	return loader.Dir(dir)
}
