package loader

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on what a file may ask of us. Real checkpoints stay far below them.
const (
	prefix     = 8              // bytes of the little-endian header length
	maxHeader  = 100_000_000    // bytes; the limit of the reference implementation
	maxTensors = 1 << 20        // DeepSeek-V3, one of the largest, has about 92,000
	maxRank    = 8              // a convolution over video has 5
	maxName    = 512            // bytes; names in use stay below 150
	metadata   = "__metadata__" // the one key of a header that is no tensor
)

// parseHeader reads the JSON of a safetensors header whose tensors fill size bytes.
// The tensors come ordered by offset, which counts from the end of the header.
func parseHeader(raw []byte, size int64) ([]Tensor, error) {
	var tensors []Tensor
	err := parseObject(raw, func(d *json.Decoder, name string) error {
		if name == metadata {
			return checkMetadata(d)
		}
		if len(tensors) == maxTensors {
			return fmt.Errorf("more than %d tensors", maxTensors)
		}
		t, err := parseTensor(d, name)
		if err != nil {
			return fmt.Errorf("tensor %.100q: %w", name, err)
		}
		tensors = append(tensors, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := checkLayout(tensors, size); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return tensors, nil
}

// checkMetadata accepts a map of strings, or the null that MLX writes for none, and keeps nothing of it.
func checkMetadata(d *json.Decoder) error {
	tok, err := token(d)
	if err != nil || tok == nil {
		return err
	}
	if err := expect(d, tok, '{'); err != nil {
		return err
	}
	return members(d, func(key string) error {
		if _, err := stringValue(d); err != nil {
			return fmt.Errorf("%s: %.100q: %w", metadata, key, err)
		}
		return nil
	})
}

// parseTensor reads {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}.
func parseTensor(d *json.Decoder, name string) (Tensor, error) {
	if err := checkName(name); err != nil {
		return Tensor{}, err
	}
	t := Tensor{Name: name}
	var offsets []int64
	seen := 0
	err := object(d, func(key string) (err error) {
		seen++
		switch key {
		case "dtype":
			var s string
			s, err = stringValue(d)
			t.DType = DType(s)
		case "shape":
			t.Shape, err = numbers[int](d, maxRank)
		case "data_offsets":
			offsets, err = numbers[int64](d, 2)
		default:
			err = errors.New("key is not known")
		}
		if err != nil {
			return fmt.Errorf("%.100q: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return Tensor{}, err
	}
	if seen != 3 {
		return Tensor{}, errors.New("dtype, shape and data_offsets are needed")
	}
	return t, t.place(offsets)
}

// place sets the extent and holds it against dtype and shape.
func (t *Tensor) place(offsets []int64) error {
	if len(offsets) != 2 || offsets[0] > offsets[1] {
		return fmt.Errorf("data_offsets %v are not a begin and an end", offsets)
	}
	want, err := t.bytes()
	if err != nil {
		return err
	}
	t.Offset, t.Size = offsets[0], offsets[1]-offsets[0]
	if t.Size != want {
		return fmt.Errorf("data_offsets %v hold %d bytes, %s of shape %v needs %d", offsets, t.Size, t.DType, t.Shape, want)
	}
	return nil
}

// checkLayout sorts tensors by offset and asks that they fill size bytes without gap
// or overlap. Bytes that no tensor owns could carry anything, so there are none.
func checkLayout(tensors []Tensor, size int64) error {
	slices.SortFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	var end int64
	for i, t := range tensors {
		switch {
		case t.Offset < end:
			return fmt.Errorf("tensor %q begins at %d, inside tensor %q that ends at %d", t.Name, t.Offset, tensors[i-1].Name, end)
		case t.Offset > end:
			return fmt.Errorf("tensor %q begins at %d, and bytes from %d on belong to no tensor", t.Name, t.Offset, end)
		case t.Size > size-end:
			return fmt.Errorf("tensor %q ends at %d, the file holds %d bytes after its header: cut short?", t.Name, t.Offset+t.Size, size)
		}
		end += t.Size
	}
	if end != size {
		return fmt.Errorf("tensors end at %d, the file holds %d bytes after its header", end, size)
	}
	return nil
}

// checkName refuses names no checkpoint has and no error message should carry. The
// replacement character is what the decoder makes of half a surrogate pair.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name has 1 to %d bytes, this one %d", maxName, len(name))
	}
	if strings.ContainsRune(name, utf8.RuneError) {
		return errors.New("the name is not UTF-8")
	}
	return nil
}
