package loader

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestBadIndexesAreRefused(t *testing.T) {
	shard := func(name string) string { return `{"weight_map": {"w": ` + name + `}}` }
	tests := []struct{ name, raw, want string }{
		{"empty", ``, "unexpected EOF"},
		{"no map", `{"metadata": {"total_size": 3}}`, "no weight_map"},
		{"empty map", `{"weight_map": {}}`, "no weight_map"},
		{"two maps", `{"weight_map": {"w": "a.safetensors"}, "weight_map": {}}`, `key "weight_map" is there twice`},
		{"tensor twice", `{"weight_map": {"w": "a.safetensors", "w": "b.safetensors"}}`, `key "w" is there twice`},
		{"broken metadata", `{"metadata": {]`, "invalid character"},
		{"number for a shard", shard(`1`), `tensor "w": "1" is not a string`},
		{"no shard name", shard(`""`), "1 to 512 bytes"},
		{"parent", shard(`".."`), "not the plain name of a file"},
		{"above", shard(`"../x.safetensors"`), `shard "../x.safetensors" is not the plain name`},
		{"absolute", shard(`"/x.safetensors"`), "not the plain name"},
		{"below", shard(`"a/x.safetensors"`), "not the plain name"},
		{"backslash", shard(`"..\\x.safetensors"`), "not the plain name"},
		{"drive", shard(`"c:x.safetensors"`), "not the plain name"},
		{"zero byte", shard(`"x\u0000.safetensors"`), "not the plain name"},
		{"another kind", shard(`"pytorch_model.bin"`), "not a .safetensors file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := parseIndex([]byte(tt.raw))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzIndex asks that an accepted index stays in its folder and means the same when it
// is written again.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata": {"total_size": 12, "deep": [[{}]]}, "weight_map": {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"w": "../x.safetensors"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		shards, index, err := parseIndex(raw)
		if err != nil {
			return
		}
		for _, name := range index {
			if _, ok := slices.BinarySearch(shards, name); !ok || strings.ContainsAny(name, "/\\\x00") || strings.Trim(name, ".") == "" {
				t.Fatalf("shard %q of %q", name, shards)
			}
		}
		again, err := json.Marshal(map[string]any{"weight_map": index})
		if err != nil {
			t.Fatal(err)
		}
		shards2, index2, err := parseIndex(again)
		if err != nil || !reflect.DeepEqual(index2, index) || !slices.Equal(shards2, shards) {
			t.Fatalf("came back as %v, was %v: %v", index2, index, err)
		}
	})
}
