package cpu

import (
	"fmt"

	"tfbatch/internal/backend"
)

// Buffer is a row-major f32 matrix. None of its values is subnormal.
type Buffer struct {
	dev        *Device
	data       []float32
	rows, cols int
}

// NewBuffer implements [backend.Device].
func (d *Device) NewBuffer(rows, cols int) (backend.Buffer, error) {
	if _, err := product("buffer", rows, cols, 4); err != nil {
		return nil, err
	}
	r, err := d.reserve("buffer", rows*cols*4)
	if err != nil {
		return nil, err
	}
	return &Buffer{dev: d, data: view[float32](r), rows: rows, cols: cols}, nil
}

// Shape implements [backend.Buffer].
func (b *Buffer) Shape() (rows, cols int) { return b.rows, b.cols }

// Top implements [backend.Buffer]. A view of more rows than there are fails where it is used.
func (b *Buffer) Top(n int) backend.Buffer {
	v := *b
	v.rows = n
	if n >= 0 && n <= b.rows {
		v.data = b.data[:n*b.cols]
	}
	return &v
}

// row is the values of row i.
func (b *Buffer) row(i int) []float32 { return b.data[i*b.cols : (i+1)*b.cols] }

// Write implements [backend.Device].
func (d *Device) Write(b backend.Buffer, data []float32) error {
	own, ok := b.(*Buffer)
	if !ok || own.dev != d || d.closed {
		return fmt.Errorf("cpu: write: the buffer is not of this device, or the device is closed")
	}
	if len(data) > len(own.data) {
		return fmt.Errorf("cpu: write: %d values into a buffer of %d", len(data), len(own.data))
	}
	for i, x := range data {
		own.data[i] = backend.Flush(x)
	}
	return nil
}
