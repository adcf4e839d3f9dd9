// Package quant holds the weight formats of a checkpoint: how a matrix is stored
// and what its codes mean. It knows nothing of files, devices or models.
//
// Start with [Matrix], the value that travels from the loader to a device, and
// [Encode], which makes an affine matrix of a dense one. MLX's micro-scaling modes
// (mxfp4, mxfp8, nvfp4) are refused by [ParseFormat].
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

// ParseFormat is the format that config.json of an MLX checkpoint describes: its mode, "" for the
// one before there were several, bits and group_size.
func ParseFormat(mode string, bits, group int) (Format, error) {
	switch mode {
	case "", "affine":
		f := Format{Affine, bits, group}
		return f, f.Check()
	case "mxfp4", "mxfp8", "nvfp4":
		return Format{}, fmt.Errorf("mode %q (micro-scaling) is not supported; convert the original checkpoint with mode \"affine\"", mode)
	}
	return Format{}, fmt.Errorf("mode %.40q is not supported, only \"affine\" is", mode)
}

// Check reports a format that does not exist.
func (f Format) Check() error {
	if f.Kind < Affine {
		if f.Bits != 0 || f.Group != 0 {
			return fmt.Errorf("%v with %d bits and groups of %d, which only affine has", f, f.Bits, f.Group)
		}
		return nil
	}
	if f.Kind > Affine {
		return fmt.Errorf("%v is no format", f)
	}
	switch f.Bits {
	case 2, 3, 4, 5, 6, 8:
	default:
		return fmt.Errorf("%d bits are not supported, only 2, 3, 4, 5, 6 and 8 are", f.Bits)
	}
	switch f.Group {
	case 32, 64, 128:
		return nil
	}
	return fmt.Errorf("groups of %d are not supported, only 32, 64 and 128 are", f.Group)
}

// Fits reports whether a row of cols inputs can be stored: a group never is cut.
func (f Format) Fits(cols int) bool { return f.Kind != Affine || cols%f.Group == 0 }

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
		return cols / codesPerPack * f.Bits
	}
	panic(fmt.Sprintf("quant: row size of %v", f))
}

// ScaleBytes is the size in bytes of the scales of one row, which is that of its biases too; 0 unless
// the format is affine.
func (f Format) ScaleBytes(cols int, scales Kind) int {
	if f.Kind != Affine {
		return 0
	}
	return cols / f.Group * scales.size()
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

// Check reports whether the format exists and the byte counts agree with the shape.
func (m Matrix) Check() error {
	if m.Rows <= 0 || m.Cols <= 0 {
		return fmt.Errorf("matrix of %d rows and %d columns", m.Rows, m.Cols)
	}
	if err := m.Format.Check(); err != nil {
		return err
	}
	if !m.Format.Fits(m.Cols) {
		return fmt.Errorf("%v matrix [%d, %d]: its groups do not divide the columns", m.Format, m.Rows, m.Cols)
	}
	if want := m.Rows * m.Format.RowBytes(m.Cols); len(m.Data) != want {
		return fmt.Errorf("%v matrix [%d, %d]: %d bytes of codes, want %d", m.Format, m.Rows, m.Cols, len(m.Data), want)
	}
	if m.Format.Kind != Affine {
		return nil
	}
	if m.ScaleKind >= Affine {
		return fmt.Errorf("%v matrix [%d, %d]: scales in %v", m.Format, m.Rows, m.Cols, Format{Kind: m.ScaleKind})
	}
	want := m.Rows * m.Format.ScaleBytes(m.Cols, m.ScaleKind)
	if len(m.Scales) != want || len(m.Biases) != want {
		return fmt.Errorf("%v matrix [%d, %d]: %d and %d bytes of scales and biases, want %d", m.Format, m.Rows, m.Cols, len(m.Scales), len(m.Biases), want)
	}
	return nil
}

// Slice is rows from..to-1 of m, which share its bytes.
func (m Matrix) Slice(from, to int) Matrix {
	s := m
	s.Rows = to - from
	s.Data = part(m.Data, m.Rows, from, to)
	s.Scales, s.Biases = part(m.Scales, m.Rows, from, to), part(m.Biases, m.Rows, from, to)
	return s
}

func part(data []byte, rows, from, to int) []byte {
	size := len(data) / rows
	return data[from*size : to*size]
}

// Row widens row r into dst, which has Cols values. An affine weight is scale·q + bias in float64,
// exact unless the two are some 2^20 apart.
func (m Matrix) Row(dst []float64, r int) {
	row := m.Slice(r, r+1)
	if m.Format.Kind == Affine {
		row.affine(dst)
		return
	}
	size := m.Format.Kind.size()
	for i := range dst {
		dst[i] = float64(m.Format.Kind.Float(row.Data[i*size:]))
	}
}
