// Package families is the one list of architectures that tfbatch runs. [Open] finds the
// family of a checkpoint; the rest of the program knows none by name.
package families

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"tfbatch/internal/model"
	"tfbatch/internal/model/lfm2"
	"tfbatch/internal/model/lfm2moe"
	"tfbatch/internal/model/llama"
	"tfbatch/internal/model/qwen3"
	"tfbatch/internal/model/qwen3moe"
	"tfbatch/loader"
)

// family is one way to understand a checkpoint, by the names that config.json may give it.
type family struct {
	architecture, modelType string
	open                    func(model.Source) (*model.Checkpoint, error)
}

var table = [...]family{
	{"Lfm2ForCausalLM", "lfm2", lfm2.Open},
	{"Lfm2MoeForCausalLM", "lfm2_moe", lfm2moe.Open},
	{"LlamaForCausalLM", "llama", llama.Open},
	{"Qwen3ForCausalLM", "qwen3", qwen3.Open},
	{"Qwen3MoeForCausalLM", "qwen3_moe", qwen3moe.Open},
}

const (
	configName     = "config.json"
	generationName = "generation_config.json"
)

// Open reads config.json and generation_config.json beside the weights, finds the family and lets it
// plan the load. No weight is read yet.
func Open(s *loader.Snapshot) (*model.Checkpoint, error) {
	config, err := read(s, configName)
	if err != nil {
		return nil, err
	}
	generation, err := read(s, generationName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := find(config)
	if err != nil {
		return nil, err
	}
	return f.open(model.Source{Config: config, Generation: generation, Tensors: s})
}

func read(s *loader.Snapshot, name string) (*model.Fields, error) {
	data, err := s.ReadFile(name, model.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	return model.ReadFields(name, data)
}

// find goes by the architecture, and by model_type only where no architecture is named: a drafter's config
// borrows the model_type of the family it is built like. Where both are there they must agree.
func find(f *model.Fields) (family, error) {
	names, kind := f.Strings("architectures"), f.StringOr("", "model_type")
	if err := f.Err(); err != nil {
		return family{}, err
	}
	if len(names) > 1 {
		return family{}, fmt.Errorf("%s: \"architectures\" lists %d; give a checkpoint of one", configName, len(names))
	}
	for _, fam := range table {
		switch {
		case len(names) == 0 && kind == fam.modelType:
			return fam, nil
		case len(names) == 0 || names[0] != fam.architecture:
		case kind == fam.modelType:
			return fam, nil
		default:
			return family{}, fmt.Errorf("%s: \"model_type\" is %.60q; %s has %q", configName, kind, fam.architecture, fam.modelType)
		}
	}
	return family{}, fmt.Errorf("%s: architecture %.60q (model_type %.60q) is not supported; there are %s", configName, strings.Join(names, ""), kind, known())
}

func known() string {
	var names []string
	for _, f := range table {
		names = append(names, f.architecture)
	}
	return strings.Join(names, ", ")
}
