// Package hub reads the cache that huggingface_hub keeps of the repositories it has downloaded, and never
// downloads itself. A repository there is a folder
//
//	models--ORG--NAME/refs/main             the commit that main was
//	models--ORG--NAME/snapshots/COMMIT/...  its files, links to
//	models--ORG--NAME/blobs/...             what they hold
//
// [Open] takes any folder of a model, [Find] a repository's id. No link is followed out of the repository's own
// folder.
package hub

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"tfbatch/internal/regular"
	"tfbatch/loader"
)

const (
	repoPrefix = "models--"
	snapshots  = "snapshots"
	refs       = "refs"
	mainRef    = "main"
	maxRef     = 256 // bytes of a file of refs; a commit has 40
)

// ids are a repository, and a branch, a tag or a commit of it.
var ids = regexp.MustCompile(`^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}(@[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*){0,4})?$`)

// commits name the folder of a snapshot.
var commits = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// IsID is whether name is written like org/name or org/name@revision.
func IsID(name string) bool { return ids.MatchString(name) && !strings.Contains(name, "..") }

// Open is the folder at path: a plain one, from which no link leads out, a snapshot of the cache, whose links
// may lead to the blobs of its repository, or a repository of the cache, which stands for its main.
func Open(path string) (fs.FS, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, err
	}
	above := filepath.Dir(real)
	if repo := filepath.Dir(above); filepath.Base(above) == snapshots && isRepo(repo) {
		return loader.DirIn(repo, snapshots+"/"+filepath.Base(real)), nil
	}
	if isRepo(real) {
		return snapshot(real, mainRef)
	}
	return loader.Dir(path), nil
}

// Find is the snapshot that the cache has of a repository.
func Find(cache, id string) (fs.FS, error) {
	if !IsID(id) {
		return nil, fmt.Errorf("%.100q is not the id of a repository: want org/name or org/name@revision", id)
	}
	name, revision, given := strings.Cut(id, "@")
	if !given {
		revision = mainRef
	}
	repo := filepath.Join(cache, repoPrefix+strings.ReplaceAll(name, "/", "--"))
	if info, err := os.Stat(repo); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no folder %s, and no %s in the cache %s; tfbatch downloads nothing: run \"hf download %s\", or set HF_HUB_CACHE or HF_HOME: %w", id, filepath.Base(repo), cache, name, fs.ErrNotExist)
	}
	return snapshot(repo, revision)
}

func isRepo(folder string) bool {
	name := filepath.Base(folder)
	info, err := os.Stat(filepath.Join(folder, snapshots))
	return strings.HasPrefix(name, repoPrefix) && err == nil && info.IsDir()
}

// snapshot is a commit, or what a branch or tag was when it was downloaded.
func snapshot(repo, revision string) (fs.FS, error) {
	commit, err := readRef(repo, revision)
	if errors.Is(err, fs.ErrNotExist) && commits.MatchString(revision) {
		commit, err = revision, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(repo, snapshots, commit))
	if err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s has no snapshot %s: there are %s; download it, or give one of these after @: %w", repo, commit, names(filepath.Join(repo, snapshots)), fs.ErrNotExist)
	}
	return loader.DirIn(repo, path.Join(snapshots, commit)), nil
}

// readRef is the commit that a branch or tag stands for.
func readRef(repo, revision string) (string, error) {
	root, err := os.OpenRoot(repo)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := path.Join(refs, revision)
	f, err := regular.In(root, filepath.FromSlash(name))
	if err != nil {
		return "", fmt.Errorf("%s: %w", repo, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRef+1))
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", repo, name, err)
	}
	commit := strings.TrimSpace(string(text))
	if !commits.MatchString(commit) {
		return "", fmt.Errorf("%s: %s holds %.40q, which is no commit", repo, name, commit)
	}
	return commit, nil
}

// names lists a folder for an error.
func names(folder string) string {
	const most = 8
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) == 0 {
		return "none"
	}
	var list []string
	for _, e := range entries[:min(len(entries), most)] {
		list = append(list, e.Name())
	}
	return strings.Join(list, ", ")
}
