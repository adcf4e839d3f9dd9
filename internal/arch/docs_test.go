package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDocsNameRealTests keeps pages from naming tests that are gone.
func TestDocsNameRealTests(t *testing.T) {
	root := filepath.Join("..", "..")
	have := map[string]bool{}
	for _, file := range goFiles(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			have[string(m[1])] = true
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "internal", "*", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
			if !have[name] {
				t.Errorf("%s names %s, which no package has", filepath.Base(page), name)
			}
		}
	}
}
