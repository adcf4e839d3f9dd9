package modeltest

import (
	"io/fs"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
	"tfbatch/loader"
)

// Open finds the family of a checkpoint: families.Open.
type Open func(*loader.Snapshot) (*model.Checkpoint, error)

// Load loads the checkpoint in dir.
func Load(t *testing.T, open Open, dev backend.Device, dir fs.FS) Subject {
	t.Helper()
	s, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	m, digests, err := c.Load(t.Context(), dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(digests) != len(s.Shards()) {
		t.Fatalf("%d digests of %d shards", len(digests), len(s.Shards()))
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

// Random makes a checkpoint, loads it and compares it with the reference.
func Random(t *testing.T, open Open, dev backend.Device, s Spec) {
	t.Helper()
	dir := Make(t, s, 1)
	values, err := ReadValues(dir)
	if err != nil {
		t.Fatal(err)
	}
	Against(t, Load(t, open, dev, dir), &Reference{s, values})
}
