package cpu

import (
	"fmt"

	"tfbatch/internal/backend"
)

// Buffer is an f32 matrix. None of its values is subnormal. Rows start on a cache line, and
// never a multiple of 4 KiB apart: a matmul reads eight rows side by side, which would then
// fight for the same few lines of the first cache (half the speed at 1024 or 2048 columns).
type Buffer struct {
	dev                *Device
	data               []float32
	rows, cols, stride int
}

// NewBuffer implements [backend.Device].
func (d *Device) NewBuffer(rows, cols int) (backend.Buffer, error) {
	if _, err := product("buffer", rows, cols, 4); err != nil {
		return nil, err
	}
	stride := rowStride(cols)
	bytes, err := product("buffer", rows, stride, 4)
	if err != nil {
		return nil, err
	}
	r, err := d.reserve("buffer", bytes)
	if err != nil {
		return nil, err
	}
	return &Buffer{dev: d, data: view[float32](r), rows: rows, cols: cols, stride: stride}, nil
}

// rowStride is the distance of rows of cols values.
func rowStride(cols int) int {
	const line, way = 16, 256 // floats in 64 bytes and in 1 KiB
	stride := ceilDiv(cols, line) * line
	if stride%way == 0 {
		stride += 4 * line
	}
	return stride
}

// Shape implements [backend.Buffer].
func (b *Buffer) Shape() (rows, cols int) { return b.rows, b.cols }

// Top implements [backend.Buffer]. A view of more rows than there are fails where it is used.
func (b *Buffer) Top(n int) backend.Buffer {
	v := *b
	v.rows = n
	if n >= 0 && n <= b.rows {
		v.data = b.data[:n*b.stride]
	}
	return &v
}

// row is the values of row i.
func (b *Buffer) row(i int) []float32 { return b.data[i*b.stride : i*b.stride+b.cols] }

// first is row 0, or nothing where a failed check left no buffer.
func (b *Buffer) first() []float32 { return b.data[:min(b.cols, len(b.data))] }

// Write implements [backend.Device].
func (d *Device) Write(b backend.Buffer, data []float32) error {
	own, ok := b.(*Buffer)
	if !ok || own == nil || own.dev != d || d.closed {
		return fmt.Errorf("cpu: write: the buffer is not of this device, or the device is closed")
	}
	if len(data) > own.rows*own.cols {
		return fmt.Errorf("cpu: write: %d values into a buffer of %d", len(data), own.rows*own.cols)
	}
	for i := 0; len(data) > 0; i++ {
		row := own.row(i)
		n := min(len(row), len(data))
		for j, x := range data[:n] {
			row[j] = backend.Flush(x)
		}
		data = data[n:]
	}
	return nil
}
