package loader

import (
	"fmt"
	"io/fs"
	"path"
)

// instead says what to do about a folder without safetensors, by what it holds in their place.
func instead(fsys fs.FS) string {
	const general = "give the folder of a safetensors checkpoint"
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return general
	}
	for _, e := range entries {
		switch path.Ext(e.Name()) {
		case ".gguf":
			return fmt.Sprintf("%.80q is of llama.cpp, whose formats are not read; take the safetensors checkpoint it was made from, and \"tfbatch quantize\" to make that small", e.Name())
		case ".bin", ".pt", ".pth":
			return fmt.Sprintf("%.80q is a pickle, which could run code and is not read; save the model with safe_serialization=True", e.Name())
		}
	}
	return general
}
