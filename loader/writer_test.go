package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriterRefusesWhatOpenWould(t *testing.T) {
	tests := []struct {
		name    string
		tensors []Tensor
		want    string
	}{
		{"name twice", []Tensor{{Name: "w", DType: U8}, {Name: "w", DType: U8}}, `key "w" is there twice`},
		{"no name", []Tensor{{DType: U8}}, "1 to 512 bytes"},
		{"dtype", []Tensor{{Name: "w", DType: "F64"}}, `dtype "F64" is none of`},
		{"negative", []Tensor{{Name: "w", DType: U8, Shape: []int{-1}}}, "negative dimension"},
		{"not UTF-8", []Tensor{{Name: "w\xff", DType: U8}}, "not UTF-8"},
		{"metadata's name", []Tensor{{Name: metadata, DType: U8}}, `key "__metadata__" is there twice`},
	}
	for _, tt := range tests {
		if _, err := NewWriter(io.Discard, tt.tensors); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestWriterCountsBytes(t *testing.T) {
	w, err := NewWriter(io.Discard, []Tensor{{Name: "w", DType: F32, Shape: []int{2}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 9)); err == nil {
		t.Error("took 9 bytes for 8")
	}
	if _, err := w.Write(make([]byte, 7)); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "1 bytes of the tensors were not written") {
		t.Errorf("closed one byte short: %v", err)
	}
}

func TestTensorsBeginAligned(t *testing.T) {
	for n := range 8 {
		var out bytes.Buffer
		name := strings.Repeat("w", n+1)
		if _, err := NewWriter(&out, []Tensor{{Name: name, DType: U8, Shape: []int{0}}}); err != nil {
			t.Fatal(err)
		}
		if out.Len()%8 != 0 {
			t.Errorf("a name of %d bytes puts the tensors at %d", len(name), out.Len())
		}
	}
}

// transformers opens no index that does not say how large the tensors are.
func TestIndexSaysItsSize(t *testing.T) {
	dir := t.TempDir()
	if err := Create(dir, someTensors(), 4500, fillContent); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, IndexName))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Metadata struct {
			Size int64 `json:"total_size"`
		}
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for _, tensor := range someTensors() {
		n, _ := tensor.bytes()
		want += n
	}
	if index.Metadata.Size != want {
		t.Errorf("index of %d bytes, want %d: %s", index.Metadata.Size, want, raw)
	}
}

func TestUnfinishedFilesHaveNoName(t *testing.T) {
	path := t.TempDir()
	broken := errors.New("broken")
	err := Create(path, someTensors(), 4500, func(t Tensor, w io.Writer) error {
		if t.Name == "codes" {
			return broken
		}
		return fillContent(t, w)
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), `tensor "codes"`) {
		t.Errorf("error %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(path, "*.json")); found != nil {
		t.Errorf("an index of an unfinished checkpoint: %q", found)
	}
	for _, name := range []string{shard2, singleName} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			t.Errorf("%s is there, unfinished", name)
		}
	}
}
