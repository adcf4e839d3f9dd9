//go:build !unix

package cpu

func newRegion(bytes int) (region, error) { return region{make([]byte, bytes)}, nil }

func (r region) free() error { return nil }
