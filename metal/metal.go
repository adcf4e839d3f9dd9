// Package metal is the device of Apple silicon. It is not built yet: [Open] refuses by name,
// so that a job file that asks for it gets an answer before anything is loaded.
package metal

import (
	"errors"

	"tfbatch/internal/backend"
)

// ErrUnsupported is what Open returns where there is no Metal device.
var ErrUnsupported = errors.New("metal: not supported in this build; use device: cpu")

// Open returns the Metal device of this machine.
func Open() (backend.Device, error) { return nil, ErrUnsupported }
