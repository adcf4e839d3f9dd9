package modeltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"

	"tfbatch/loader"
)

// Values are the elements of tensors, by name.
type Values map[string][]float64

// ReadValues reads all tensors of a checkpoint.
func ReadValues(fsys fs.FS) (Values, error) {
	s, err := loader.Open(fsys)
	if err != nil {
		return nil, err
	}
	v := Values{}
	_, err = loader.Load(context.Background(), s, loader.Steps[[]float64]{
		Want:   func(loader.Tensor) bool { return true },
		Encode: decode,
		Upload: func(t loader.Tensor, values []float64) error {
			v[t.Name] = values
			return nil
		},
	})
	return v, err
}

// ReadFile is ReadValues of one safetensors file of any name.
func ReadFile(fsys fs.FS, name string) (Values, error) { return ReadValues(renamed{fsys, name}) }

// renamed shows one file under the name that a checkpoint has.
type renamed struct {
	fs.FS
	name string
}

func (r renamed) Open(name string) (fs.File, error) {
	if name != "model.safetensors" {
		return nil, fs.ErrNotExist
	}
	return r.FS.Open(r.name)
}

func decode(t loader.Tensor, data []byte) ([]float64, error) {
	size := int(t.DType.Size())
	out := make([]float64, len(data)/size)
	for i := range out {
		at := data[i*size:]
		switch t.DType {
		case loader.BF16:
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16))
		case loader.F32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
		case loader.U32:
			out[i] = float64(binary.LittleEndian.Uint32(at))
		case loader.I64:
			out[i] = float64(int64(binary.LittleEndian.Uint64(at)))
		default:
			return nil, fmt.Errorf("cannot read %s", t.DType)
		}
	}
	return out, nil
}

// IDs is a tensor of token ids.
func (v Values) IDs(name string) []int32 {
	ids := make([]int32, len(v[name]))
	for i, x := range v[name] {
		ids[i] = int32(x)
	}
	return ids
}
