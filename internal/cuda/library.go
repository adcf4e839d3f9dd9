//go:build !windows

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// libraryFolders are where drivers put the library besides the loader's own path.
var libraryFolders = []string{"", "/usr/local/nvidia/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib/wsl/lib/"}

// loadLibrary finds the driver library.
func loadLibrary() (func(name string) (uintptr, error), error) {
	var failed error
	for _, folder := range libraryFolders {
		lib, err := purego.Dlopen(folder+"libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return func(name string) (uintptr, error) { return purego.Dlsym(lib, name) }, nil
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, fmt.Errorf("cuda: no NVIDIA driver found; use device: cpu: %w", failed)
}
