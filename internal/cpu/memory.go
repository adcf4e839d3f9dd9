package cpu

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// region is zeroed memory outside the Go heap, so that the collector neither scans
// nor counts gigabytes of weights.
type region struct{ bytes []byte }

// reserve takes memory that lives until the device is closed.
func (d *Device) reserve(what string, bytes int) (region, error) {
	if d.closed {
		return region{}, fmt.Errorf("cpu: %s: the device is closed", what)
	}
	r, err := newRegion(bytes)
	if err != nil {
		return region{}, fmt.Errorf("cpu: %s of %d bytes: %w", what, bytes, err)
	}
	d.regions = append(d.regions, r)
	return r, nil
}

// view is the region as a slice of T.
func view[T uint16 | float32](r region) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r.bytes))), len(r.bytes)/int(unsafe.Sizeof(t)))
}

// product multiplies sizes that come from a checkpoint or a job.
func product(what string, sizes ...int) (int, error) {
	n := uint64(1)
	for _, s := range sizes {
		if s <= 0 {
			return 0, fmt.Errorf("cpu: %s of sizes %v: every size must be above zero", what, sizes)
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 || lo > maxBytes {
			return 0, fmt.Errorf("cpu: %s of sizes %v: above %d bytes", what, sizes, uint64(maxBytes))
		}
		n = lo
	}
	return int(n), nil
}

// maxBytes is more than an address space of 47 bits can hold in one piece.
const maxBytes = 1 << 46
