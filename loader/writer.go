package loader

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Writer writes one safetensors file: the header at once, then the bytes of each
// tensor in the order given, in pieces of any size.
type Writer struct {
	w    io.Writer
	left int64
}

// NewWriter writes the header for tensors, of which Name, DType and Shape are used.
func NewWriter(w io.Writer, tensors []Tensor) (*Writer, error) {
	raw, size, err := makeHeader(tensors)
	if err != nil {
		return nil, err
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(len(raw))); err != nil {
		return nil, err
	}
	_, err = w.Write(raw)
	return &Writer{w: w, left: size}, err
}

// Write takes the next bytes; more than the header announced are an error.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, fmt.Errorf("%d bytes more than the tensors hold", int64(len(p))-w.left)
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	return n, err
}

// Close reports bytes that are missing. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.left > 0 {
		return fmt.Errorf("%d bytes of the tensors were not written", w.left)
	}
	return nil
}

// makeHeader lays tensors out one after the other. What [Open] would refuse is an
// error here too: the header is read back before it is given out.
func makeHeader(tensors []Tensor) (raw []byte, size int64, err error) {
	type entry struct {
		DType   DType    `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	raw = []byte(`{"__metadata__":{"format":"pt"}`)
	for _, t := range tensors {
		n, err := t.bytes()
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		value, err := json.Marshal(entry{t.DType, append([]int{}, t.Shape...), [2]int64{size, size + n}})
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		raw = append(append(append(append(raw, ','), name...), ':'), value...)
		size += n
	}
	raw = append(raw, '}')
	for len(raw)%prefix != 0 { // so that the tensors begin aligned
		raw = append(raw, ' ')
	}
	if len(raw) > maxHeader {
		return nil, 0, fmt.Errorf("header of %d bytes, at most %d are read", len(raw), maxHeader)
	}
	_, err = parseHeader(raw, size)
	return raw, size, err
}

// Create writes a checkpoint to the folder dir, which must exist: model.safetensors, or
// shards of about shardSize bytes with an index. fill writes the bytes of one tensor. A
// file gets its name when it is whole, the index comes last.
func Create(dir string, tensors []Tensor, shardSize int64, fill func(Tensor, io.Writer) error) error {
	parts, err := split(tensors, shardSize)
	if err != nil {
		return err
	}
	if len(parts) == 1 {
		return createShard(dir, singleName, tensors, fill)
	}
	index := make(map[string]string)
	var total int64
	for i, part := range parts {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(parts))
		if err := createShard(dir, name, part, fill); err != nil {
			return err
		}
		for _, t := range part {
			n, _ := t.bytes() // which split has looked at
			index[t.Name], total = name, total+n
		}
	}
	return createFile(filepath.Join(dir, IndexName), func(w io.Writer) error {
		// transformers opens no index without metadata.
		return json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": index})
	})
}

// split cuts tensors into runs of at most size bytes, or of one tensor.
func split(tensors []Tensor, size int64) ([][]Tensor, error) {
	parts := [][]Tensor{nil}
	var sum int64
	for _, t := range tensors {
		n, err := t.bytes()
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		last := len(parts) - 1
		if len(parts[last]) > 0 && n > size-sum {
			parts = append(parts, nil)
			sum = 0
			last++
		}
		parts[last] = append(parts[last], t)
		sum += n
	}
	return parts, nil
}

func createShard(dir, name string, tensors []Tensor, fill func(Tensor, io.Writer) error) error {
	err := createFile(filepath.Join(dir, name), func(f io.Writer) error {
		w, err := NewWriter(f, tensors)
		if err != nil {
			return err
		}
		for _, t := range tensors {
			if err := fill(t, w); err != nil {
				return fmt.Errorf("tensor %q: %w", t.Name, err)
			}
		}
		return w.Close()
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// createFile writes path by way of path.partial.
func createFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path + ".partial")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
