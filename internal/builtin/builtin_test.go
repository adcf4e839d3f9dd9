package builtin

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"tfbatch/loader"
)

// sums reads the digests of a model's files, as they were before they were packed.
func sums(t *testing.T, model string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(root, model, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		list[name] = sum
	}
	return list
}

func TestFilesAreTheOriginals(t *testing.T) {
	for _, model := range Names() {
		fsys, err := Open(model)
		if err != nil {
			t.Fatal(err)
		}
		list := sums(t, model)
		for name, want := range list {
			got, size := digest(t, fsys, name)
			if got != want {
				t.Errorf("%s/%s has digest %s, want %s", model, name, got, want)
			}
			if info, err := fs.Stat(fsys, name); err != nil || info.Size() != size {
				t.Errorf("%s/%s: stat %v, %v, read %d bytes", model, name, info, err, size)
			}
		}
		entries, err := packed.ReadDir(root + "/" + model)
		if err != nil || len(entries) != len(list) {
			t.Errorf("%s embeds %d files, SHA256SUMS lists %d: %v", model, len(entries), len(list), err)
		}
	}
}

func digest(t *testing.T, fsys fs.FS, name string) (sum string, size int64) {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil)), size
}

func TestLoaderReadsThemAsAFolder(t *testing.T) {
	for _, model := range Names() {
		fsys, err := Open(model)
		if err != nil {
			t.Fatal(err)
		}
		s, err := loader.Open(fsys)
		if err != nil {
			t.Fatal(err)
		}
		var tensors int
		digests, err := loader.Load(t.Context(), s, loader.Steps[[]byte]{
			Want:   func(loader.Tensor) bool { return true },
			Encode: func(_ loader.Tensor, raw []byte) ([]byte, error) { return raw, nil },
			Upload: func(loader.Tensor, []byte) error { tensors++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		list := sums(t, model)
		for _, d := range digests {
			if d.SHA256 != list[d.Name] {
				t.Errorf("%s/%s: digest %s, want %s", model, d.Name, d.SHA256, list[d.Name])
			}
		}
		t.Logf("%s: %d tensors in %d shards, %d bytes", model, tensors, len(digests), s.Bytes())
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	if _, err := Open("gopher"); err == nil || !strings.Contains(err.Error(), "gopher-15m, gopher-15m-dspark") {
		t.Errorf("error %v does not list what there is", err)
	}
	fsys, err := Open("gopher-15m")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fsys.Open("pytorch_model.bin"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	for _, name := range []string{"../gopher-15m-dspark/config.json", "/etc/passwd", ""} {
		if _, err := fsys.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q gives %v", name, err)
		}
	}
}

func TestJoinerPairsBytes(t *testing.T) {
	for split, want := range map[string]string{"": "", "a": "a", "acebd": "abcde", "acebdf": "abcdef"} {
		j := &joiner{r: strings.NewReader(split)}
		if got, err := io.ReadAll(iotest.OneByteReader(j)); err != nil || string(got) != want {
			t.Errorf("%q joins to %q, want %q: %v", split, got, want, err)
		}
	}
}
