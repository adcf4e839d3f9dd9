package loader

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// someTensors are of every width, with an empty one and a scalar among them.
func someTensors() []Tensor {
	return []Tensor{
		{Name: "embed", DType: BF16, Shape: []int{64, 32}},
		{Name: "empty", DType: F32, Shape: []int{0, 7}},
		{Name: "scalar", DType: F32},
		{Name: "bias", DType: F32, Shape: []int{5}},
		{Name: "codes", DType: U32, Shape: []int{40, 4}},
		{Name: "mask", DType: Bool, Shape: []int{3}},
		{Name: "head", DType: F16, Shape: []int{64, 32}},
	}
}

// content is what every test checkpoint holds for t: bytes that depend on name and place.
func content(t Tensor) []byte {
	n, err := t.bytes()
	if err != nil {
		panic(err)
	}
	raw := make([]byte, n)
	seed := sha256.Sum256([]byte(t.Name))
	for i := range raw {
		raw[i] = seed[i%len(seed)] + byte(i/len(seed))
	}
	return raw
}

func fillContent(t Tensor, w io.Writer) error {
	_, err := w.Write(content(t))
	return err
}

// checkpoint writes someTensors in shards of about size bytes and returns the folder.
func checkpoint(t testing.TB, size int64) string {
	t.Helper()
	path := t.TempDir()
	if err := Create(path, someTensors(), size, fillContent); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadBringsEveryByteAndDigest(t *testing.T) {
	for _, size := range []int64{1, 4500, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := checkpoint(t, size)
			s, err := Open(Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string][]byte)
			var order []string
			var read int64
			digests, err := Load(t.Context(), s, Steps[[]byte]{
				Want:   func(t Tensor) bool { return t.Name != "codes" },
				Encode: func(_ Tensor, raw []byte) ([]byte, error) { return raw, nil },
				Upload: func(t Tensor, raw []byte) error {
					order = append(order, t.Name)
					got[t.Name] = bytes.Clone(raw)
					return nil
				},
				Progress: func(n int64) { read += n },
			})
			if err != nil {
				t.Fatal(err)
			}
			if read != s.Bytes() {
				t.Errorf("progress sums to %d of %d bytes", read, s.Bytes())
			}
			var want []string
			for x := range s.All() {
				if x.Name == "codes" {
					continue
				}
				want = append(want, x.Name)
				if !bytes.Equal(got[x.Name], content(x)) {
					t.Errorf("tensor %q differs", x.Name)
				}
			}
			if !slices.Equal(order, want) {
				t.Errorf("order %q, want %q", order, want)
			}
			checkDigests(t, path, s, digests)
		})
	}
}

func TestReadTensorBringsOneOutOfTurn(t *testing.T) {
	path := checkpoint(t, 4500)
	s, err := Open(Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var buf []byte
	for tensor := range s.All() {
		if buf, err = s.ReadTensor(tensor.Name, buf); err != nil || !bytes.Equal(buf, content(tensor)) {
			t.Errorf("%s: error %v, or other bytes than were written", tensor.Name, err)
		}
	}
	s.fsys = forward{s.fsys} // as files are that decompress
	for tensor := range s.All() {
		if buf, err = s.ReadTensor(tensor.Name, buf); err != nil || !bytes.Equal(buf, content(tensor)) {
			t.Errorf("%s, read forward: error %v, or other bytes than were written", tensor.Name, err)
		}
	}
	if _, err := s.ReadTensor("none", nil); err == nil {
		t.Error("read a tensor that is not there")
	}
	head, _ := s.Tensor("head")
	if err := os.Truncate(filepath.Join(path, head.Shard), head.Offset+head.Size-1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadTensor("head", nil); !errors.Is(err, errChanged) {
		t.Errorf("error %v of a shard that was cut, want %v", err, errChanged)
	}
}

// forward shows files that cannot be read but from their start on.
type forward struct{ fs.FS }

func (f forward) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	return struct{ fs.File }{file}, err
}

func checkDigests(t *testing.T, path string, s *Snapshot, digests []Digest) {
	t.Helper()
	if len(digests) != len(s.Shards()) {
		t.Fatalf("%d digests of %d shards", len(digests), len(s.Shards()))
	}
	for i, d := range digests {
		raw, err := os.ReadFile(filepath.Join(path, d.Name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		want := Digest{Name: s.Shards()[i].Name, Size: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])}
		if d != want {
			t.Errorf("digest %v, want %v", d, want)
		}
	}
}

// BenchmarkLoad is bound by the digest, where the file is in the page cache.
func BenchmarkLoad(b *testing.B) {
	path := b.TempDir()
	if err := Create(path, matrices(64<<20, 8<<20), 1<<30, fillNoise); err != nil {
		b.Fatal(err)
	}
	s, err := Open(Dir(path))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(s.Bytes())
	for b.Loop() {
		if _, err := Load(b.Context(), s, everything()); err != nil {
			b.Fatal(err)
		}
	}
}
