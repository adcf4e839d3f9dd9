//go:build unix

package regular_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tfbatch/internal/regular"
)

// TestOnlyFilesAreOpened would hang on a pipe that is opened the usual way: nobody writes to it.
func TestOnlyFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("text"), 0o600))
	must(os.Symlink("file", at("link")))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.Symlink("pipe", at("link-to-pipe")))
	must(os.Mkdir(at("folder"), 0o700))
	socket, err := net.Listen("unix", at("socket"))
	must(err)
	defer socket.Close()
	root, err := os.OpenRoot(dir)
	must(err)
	defer root.Close()

	for _, name := range []string{"file", "link"} {
		for _, open := range openers(root, dir) {
			f, err := open(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if text, err := io.ReadAll(f); string(text) != "text" {
				t.Errorf("%s holds %q, %v", name, text, err)
			}
			f.Close()
		}
	}
	for name, want := range map[string]string{
		"pipe": "is a named pipe, not a file", "link-to-pipe": "is a named pipe, not a file",
		"socket": "is a socket, not a file", "none": "no such file",
	} {
		for _, open := range openers(root, dir) {
			if _, err := open(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
	if _, err := regular.Open(at("folder")); err == nil || !strings.Contains(err.Error(), "is a directory, not a file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := regular.Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "is a device, not a file") {
		t.Errorf("%s: %v", os.DevNull, err)
	}
	if f, err := regular.In(root, "folder"); err != nil {
		t.Errorf("a folder in a root: %v", err)
	} else {
		f.Close()
	}
}

func openers(root *os.Root, dir string) []func(name string) (*os.File, error) {
	return []func(string) (*os.File, error){
		func(name string) (*os.File, error) { return regular.Open(filepath.Join(dir, name)) },
		func(name string) (*os.File, error) { return regular.In(root, name) },
	}
}
