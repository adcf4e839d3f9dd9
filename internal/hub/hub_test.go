//go:build unix

package hub_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/hub"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// cache makes a cache of one repository whose config.json is a link to a blob.
func cache(t *testing.T) (folder, repo string) {
	t.Helper()
	folder = t.TempDir()
	repo = filepath.Join(folder, "models--org--name")
	write(t, filepath.Join(repo, "refs/main"), commit)
	write(t, filepath.Join(repo, "refs/pr/1"), commit+"\n")
	write(t, filepath.Join(repo, "blobs/abc"), "text")
	write(t, filepath.Join(folder, "secret"), "secret")
	write(t, filepath.Join(repo, "snapshots", commit, "plain"), "plain")
	link(t, "../../blobs/abc", filepath.Join(repo, "snapshots", commit, "config.json"))
	link(t, "../../../secret", filepath.Join(repo, "snapshots", commit, "stolen"))
	link(t, filepath.Join(folder, "secret"), filepath.Join(repo, "snapshots", commit, "absolute"))
	link(t, "../../blobs/gone", filepath.Join(repo, "snapshots", commit, "gone"))
	return folder, repo
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// TestLinksStayInTheirRepository opens the same snapshot by every way there is.
func TestLinksStayInTheirRepository(t *testing.T) {
	folder, repo := cache(t)
	link(t, filepath.Join(repo, "snapshots", commit), filepath.Join(folder, "mine"))
	found := map[string]func() (fs.FS, error){
		"id":         func() (fs.FS, error) { return hub.Find(folder, "org/name") },
		"branch":     func() (fs.FS, error) { return hub.Find(folder, "org/name@main") },
		"request":    func() (fs.FS, error) { return hub.Find(folder, "org/name@pr/1") },
		"commit":     func() (fs.FS, error) { return hub.Find(folder, "org/name@"+commit) },
		"repository": func() (fs.FS, error) { return hub.Open(repo) },
		"snapshot":   func() (fs.FS, error) { return hub.Open(filepath.Join(repo, "snapshots", commit)) },
		"link to it": func() (fs.FS, error) { return hub.Open(filepath.Join(folder, "mine")) },
	}
	for name, open := range found {
		fsys, err := open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for file, want := range map[string]string{"config.json": "text", "plain": "plain"} {
			if text, err := fs.ReadFile(fsys, file); string(text) != want {
				t.Errorf("%s: %s holds %q, %v", name, file, text, err)
			}
		}
		for file, want := range map[string]string{
			"stolen": "is a link out of that folder", "absolute": "is a link out of that folder", "gone": "no such file", "../../refs/main": "invalid",
		} {
			if text, err := fs.ReadFile(fsys, file); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %q, %v; want %s", name, file, text, err, want)
			}
		}
	}
}

func TestOnlyTheCacheMakesBlobsReachable(t *testing.T) {
	_, repo := cache(t)
	plain := filepath.Join(t.TempDir(), "repo")
	if err := os.Rename(repo, plain); err != nil {
		t.Fatal(err)
	}
	fsys, err := hub.Open(filepath.Join(plain, "snapshots", commit))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(fsys, "config.json"); err == nil || !strings.Contains(err.Error(), "cp -rL") {
		t.Errorf("a link out of a folder of another name: %v", err)
	}
}

func TestWhatTheCacheLacksIsNamed(t *testing.T) {
	folder, repo := cache(t)
	write(t, filepath.Join(repo, "refs/up"), "../../..")
	write(t, filepath.Join(repo, "refs/old"), strings.Repeat("0", 40))
	link(t, "../../secret", filepath.Join(repo, "refs/out"))
	for id, want := range map[string]string{
		"org/other":      `no models--org--other in the cache ` + folder + `; tfbatch downloads nothing: run "hf download org/other"`,
		"org/name@gone":  "has no snapshot gone: there are " + commit,
		"org/name@old":   "has no snapshot 0000000000000000000000000000000000000000",
		"org/name@up":    `refs/up holds "../../..", which is no commit`,
		"org/name@out":   "escapes",
		"org/../name":    "not the id of a repository",
		"../org":         "not the id of a repository",
		"org/name@../..": "not the id of a repository",
		"org/name/x":     "not the id of a repository",
		"name":           "not the id of a repository",
	} {
		if _, err := hub.Find(folder, id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", id, err, want)
		}
	}
}
