package cuda

import "errors"

// loadLibrary refuses: nobody has run this on Windows.
func loadLibrary() (func(name string) (uintptr, error), error) {
	return nil, errors.New("cuda: not supported on Windows; use device: cpu")
}
