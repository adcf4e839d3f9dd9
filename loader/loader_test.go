package loader

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	shard1 = "model-00001-of-00003.safetensors"
	shard2 = "model-00002-of-00003.safetensors"
)

// inMemory is a checkpoint of three shards that a test can tamper with.
func inMemory(t testing.TB) fstest.MapFS {
	t.Helper()
	path := checkpoint(t, 4500)
	files := make(fstest.MapFS)
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(path, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = &fstest.MapFile{Data: raw}
	}
	if len(files) != 4 {
		t.Fatalf("wrote %d files, want three shards and an index", len(files))
	}
	return files
}

func TestOpenListsTensorsInOrderOfBytes(t *testing.T) {
	files := inMemory(t)
	s, err := Open(files)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var end int64
	for x := range s.All() {
		names = append(names, x.Name)
		same, ok := s.Tensor(x.Name)
		if !ok || same.Offset != x.Offset || same.Shard != x.Shard {
			t.Errorf("by name %v, in order %v", same, x)
		}
		if got := files[x.Shard].Data[x.Offset : x.Offset+x.Size]; string(got) != string(content(x)) {
			t.Errorf("tensor %q is not at %d of %s", x.Name, x.Offset, x.Shard)
		}
		end += x.Size
	}
	want := []string{"embed", "empty", "scalar", "bias", "codes", "mask", "head"}
	if !slices.Equal(names, want) {
		t.Errorf("tensors %q, want %q", names, want)
	}
	if _, ok := s.Tensor("nobody"); ok {
		t.Error("found a tensor that is not there")
	}
	if got := s.Bytes(); got <= end {
		t.Errorf("%d bytes in shards, %d in tensors", got, end)
	}
}

func TestReadFileHoldsItsLimit(t *testing.T) {
	s, err := Open(withFile(inMemory(t), "config.json", `{"a": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := s.ReadFile("config.json", 8); err != nil || string(raw) != `{"a": 1}` {
		t.Errorf("read %q: %v", raw, err)
	}
	if _, err := s.ReadFile("config.json", 7); err == nil || !strings.Contains(err.Error(), "config.json has 8 bytes, at most 7 are read") {
		t.Errorf("error %v", err)
	}
	if _, err := s.ReadFile("tokenizer.json", 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func withFile(files fstest.MapFS, name, text string) fstest.MapFS {
	files[name] = &fstest.MapFile{Data: []byte(text)}
	return files
}

func TestBadCheckpointsAreRefused(t *testing.T) {
	length := func(n uint64) func(fstest.MapFS) {
		return func(files fstest.MapFS) { binary.LittleEndian.PutUint64(files[shard1].Data, n) }
	}
	index := func(old, new string) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			withFile(files, IndexName, strings.Replace(string(files[IndexName].Data), old, new, 1))
		}
	}
	tests := []struct {
		name   string
		tamper func(fstest.MapFS)
		want   string
	}{
		{"nothing there", func(files fstest.MapFS) { clear(files) }, "no model.safetensors and no model.safetensors.index.json"},
		{"shard missing", func(files fstest.MapFS) { delete(files, shard2) }, "1 of the 3 shards that model.safetensors.index.json lists are missing: " + shard2 + "; was"},
		{"shard is a folder", func(files fstest.MapFS) { files[shard1] = &fstest.MapFile{Mode: fs.ModeDir} }, shard1 + " is a directory, not a file"},
		{"two checkpoints", func(files fstest.MapFS) { files[singleName] = files[shard1] }, "are both there and disagree"},
		{"file of 5 bytes", func(files fstest.MapFS) { withFile(files, shard1, "short") }, shard1 + ": no safetensors header in 5 bytes"},
		{"header of 2^63", length(1 << 63), "header of 9223372036854775808 bytes, at most 100000000"},
		{"header past the limit", length(maxHeader + 1), "header of 100000001 bytes, at most"},
		{"header past the file", length(50_000), "header of 50000 bytes in a file of"},
		{"data cut", func(files fstest.MapFS) { cut(files, shard1, 1) }, shard1 + `: header: tensor "bias" ends at 4120, the file holds 4119`},
		{"data appended", func(files fstest.MapFS) { files[shard1].Data = append(files[shard1].Data, 0) }, "tensors end at 4120, the file holds 4121"},
		{"a tensor in two shards", func(files fstest.MapFS) { files[shard2] = files[shard1] }, `tensor "embed" is in both ` + shard1 + " and " + shard2},
		{"index too large", func(files fstest.MapFS) { withFile(files, IndexName, strings.Repeat(" ", maxIndex+1)) }, "at most 67108864 are read"},
		{"index broken", index("{", "["), IndexName + ": "},
		{"index lacks a tensor", index(`"bias"`, `"bios"`), IndexName + `: tensor "bias" of ` + shard1 + " is not in weight_map"},
		{"index has one more", index(`"bias"`, `"bios": "`+shard1+`", "bias"`), `1 tensors are not where weight_map has them: "bios" (in ` + shard1 + ")"},
		{"index names another shard", index(`"bias":"`+shard1, `"bias":"`+shard2), `tensor "bias" should be in ` + shard2 + ", it is in " + shard1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := inMemory(t)
			tt.tamper(files)
			_, err := Open(files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func cut(files fstest.MapFS, name string, n int) {
	f := *files[name]
	f.Data = f.Data[:len(f.Data)-n]
	files[name] = &f
}

// MLX writes an index beside a single file.
func TestIndexMayNameTheSingleFile(t *testing.T) {
	path := checkpoint(t, 1<<20)
	raw := `{"weight_map": {"embed": "X", "empty": "X", "scalar": "X", "bias": "X", "codes": "X", "mask": "X", "head": "X"}}`
	if err := os.WriteFile(filepath.Join(path, IndexName), []byte(strings.ReplaceAll(raw, "X", singleName)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Dir(path)); err != nil {
		t.Error(err)
	}
}

func TestDirKeepsToItsFolder(t *testing.T) {
	blob := checkpoint(t, 1<<20)
	link := func(target, name string) {
		if err := os.Symlink(target, name); err != nil {
			t.Skip(err)
		}
	}
	snapshot := t.TempDir()
	link(filepath.Join(blob, singleName), filepath.Join(snapshot, singleName))
	if _, err := Open(Dir(snapshot)); err == nil || !strings.Contains(err.Error(), "is a link out of that folder") || !strings.Contains(err.Error(), "cp -rL") {
		t.Errorf("a link out of the folder gives %v", err)
	}
	if err := os.Rename(filepath.Join(blob, singleName), filepath.Join(blob, "weights")); err != nil {
		t.Fatal(err)
	}
	link("weights", filepath.Join(blob, singleName))
	if _, err := Open(Dir(blob)); err != nil {
		t.Errorf("a link within the folder gives %v", err)
	}
	for _, name := range []string{"../" + filepath.Base(blob), "/etc/hosts", ""} {
		if _, err := Dir(blob).Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q gives %v", name, err)
		}
	}
}

func TestFoldersOfOtherFormatsAreNamed(t *testing.T) {
	for name, want := range map[string]string{
		"model-Q4_K_M.gguf": "llama.cpp",
		"pytorch_model.bin": "pickle",
		"README.md":         "give the folder of a safetensors checkpoint",
	} {
		_, err := Open(fstest.MapFS{name: {Data: []byte("x")}})
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
}
