package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Limits on an index.
const (
	maxIndex  = 64 << 20 // bytes; that of DeepSeek-V3 has 9 MB
	maxShards = 4096     // checkpoints of 400 billion weights have about 200
)

// parseIndex reads model.safetensors.index.json: {"weight_map": {tensor: shard}}, and
// lists the shards in order of name. What else the file says (metadata, with a total_size
// that is often wrong) is not used.
func parseIndex(raw []byte) (shards []string, index map[string]string, err error) {
	err = parseObject(raw, func(d *json.Decoder, key string) error {
		if key != "weight_map" {
			var skipped json.RawMessage
			return d.Decode(&skipped)
		}
		index = make(map[string]string)
		return parseWeightMap(d, index)
	})
	if err != nil {
		return nil, nil, err
	}
	if len(index) == 0 {
		return nil, nil, errors.New("no weight_map, or an empty one")
	}
	set := make(map[string]bool)
	for _, shard := range index {
		set[shard] = true
	}
	if len(set) > maxShards {
		return nil, nil, fmt.Errorf("%d shards, at most %d are read", len(set), maxShards)
	}
	return slices.Sorted(maps.Keys(set)), index, nil
}

func parseWeightMap(d *json.Decoder, index map[string]string) error {
	return object(d, func(name string) error {
		if len(index) == maxTensors {
			return fmt.Errorf("more than %d tensors", maxTensors)
		}
		if err := checkName(name); err != nil {
			return fmt.Errorf("tensor %.100q: %w", name, err)
		}
		shard, err := stringValue(d)
		if err == nil {
			err = checkShardName(shard)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		index[name] = shard
		return nil
	})
}

// checkShardName keeps an index inside its own folder.
func checkShardName(name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("shard %.100q: %w", name, err)
	}
	if strings.ContainsAny(name, `/\:`) || strings.ContainsRune(name, 0) || !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("shard %q is not the plain name of a file", name)
	}
	if !strings.HasSuffix(name, ".safetensors") {
		return fmt.Errorf("shard %q is not a .safetensors file", name)
	}
	return nil
}

// checkIndex asks that index and headers list the same tensors in the same shards.
func (s *Snapshot) checkIndex(index map[string]string) error {
	for _, t := range s.tensors {
		shard, ok := index[t.Name]
		if !ok {
			return fmt.Errorf("tensor %q of %s is not in weight_map", t.Name, t.Shard)
		}
		if shard != t.Shard {
			return fmt.Errorf("tensor %q should be in %s, it is in %s", t.Name, shard, t.Shard)
		}
	}
	if len(index) == len(s.tensors) {
		return nil
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if _, ok := s.byName[name]; !ok {
			lost = append(lost, fmt.Sprintf("%q (in %s)", name, index[name]))
		}
	}
	return fmt.Errorf("%d tensors are not where weight_map has them: %s", len(lost), some(lost))
}
