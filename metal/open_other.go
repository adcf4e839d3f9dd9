//go:build !(darwin && arm64)

package metal

import "tfbatch/internal/backend"

// Open returns the Metal device of this machine.
func Open() (backend.Device, error) { return nil, ErrUnsupported }
