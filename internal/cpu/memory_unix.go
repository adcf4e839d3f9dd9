//go:build unix

package cpu

import "golang.org/x/sys/unix"

func newRegion(bytes int) (region, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return region{}, err
	}
	adviseHuge(b)
	return region{b}, nil
}

func (r region) free() error { return unix.Munmap(r.bytes) }
