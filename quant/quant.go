// Package quant holds the weight formats of a checkpoint: how a matrix is stored
// and what its codes mean. It knows nothing of files, devices or models.
//
// Start with [Matrix], the value that travels from the loader to a device.
package quant

import "fmt"

// Kind says how one weight is stored.
type Kind uint8

// The kinds of storage. Affine is MLX's scheme: w = scale·q + bias per group of
// consecutive inputs, q an unsigned code of Format.Bits bits.
const (
	BF16 Kind = iota
	F16
	F32
	Affine
)

// Format is the storage of one matrix. Bits and Group are zero unless Kind is Affine.
type Format struct {
	Kind  Kind
	Bits  int // 2, 3, 4, 5, 6 or 8
	Group int // inputs that share a scale and a bias: 32, 64 or 128
}

// String names a format the way plans and errors do: "bf16", "f32", "affine4/64".
func (f Format) String() string {
	switch f.Kind {
	case BF16:
		return "bf16"
	case F16:
		return "f16"
	case F32:
		return "f32"
	case Affine:
		return fmt.Sprintf("affine%d/%d", f.Bits, f.Group)
	}
	return fmt.Sprintf("kind%d", uint8(f.Kind))
}

// RowBytes is the size in bytes of the codes of one row of cols inputs.
func (f Format) RowBytes(cols int) int {
	switch f.Kind {
	case BF16, F16:
		return 2 * cols
	case F32:
		return 4 * cols
	case Affine:
		return cols * f.Bits / 8
	}
	panic(fmt.Sprintf("quant: row size of %v", f))
}

// Matrix is a weight [Rows, Cols] in row-major order as the checkpoint stores it,
// little-endian. Scales and Biases are [Rows, Cols/Group] in ScaleKind, and empty
// unless the format is affine. The bytes belong to whoever made the value.
type Matrix struct {
	Rows, Cols     int
	Format         Format
	Data           []byte
	ScaleKind      Kind
	Scales, Biases []byte
}

// Check reports whether the byte counts agree with the shape.
func (m Matrix) Check() error {
	if m.Rows <= 0 || m.Cols <= 0 {
		return fmt.Errorf("matrix of %d rows and %d columns", m.Rows, m.Cols)
	}
	if want := m.Rows * m.Format.RowBytes(m.Cols); len(m.Data) != want {
		return fmt.Errorf("%v matrix [%d, %d]: %d bytes of codes, want %d", m.Format, m.Rows, m.Cols, len(m.Data), want)
	}
	if m.Format.Kind != Affine {
		return nil
	}
	groups := m.Rows * (m.Cols / m.Format.Group)
	want := Format{Kind: m.ScaleKind}.RowBytes(groups)
	if len(m.Scales) != want || len(m.Biases) != want {
		return fmt.Errorf("%v matrix [%d, %d]: %d and %d bytes of scales and biases, want %d", m.Format, m.Rows, m.Cols, len(m.Scales), len(m.Biases), want)
	}
	return nil
}
