// Package arch holds the import table of ARCHITECTURE.md. It has no code of its own: the
// test reads every Go file of the module through os, whatever its build tags (go list would
// hide what another system builds, and a cached pass would survive a broken import).
package arch

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "tfbatch"

// place says what one package may import of ours. Test files may import that, their own
// package, and what tests lists besides.
type place struct {
	imports []string
	tests   []string
}

// table has a line for every package, lowest first. A package that is not here fails.
var table = map[string]place{
	// leaves
	"jobs":               {},
	"pipeline":           {},
	"loader":             {imports: []string{"internal/regular"}},
	"quant":              {},
	"internal/row":       {},
	"internal/regular":   {},
	"internal/journal":   {},
	"internal/chat":      {imports: []string{"loader", "internal/tokenizer"}},
	"internal/hub":       {imports: []string{"loader", "internal/regular"}},
	"internal/tokenizer": {imports: []string{"internal/tokenizer/pattern", "internal/tokenizer/ucd"}, tests: []string{"internal/builtin", "loader"}},
	"internal/jinja":     {},
	"internal/grammar":   {},
	"internal/dataset":   {},
	"internal/metrics":   {imports: []string{"internal/regular"}},
	"internal/report":    {imports: []string{"internal/metrics"}},
	"internal/queue":     {},
	"internal/arch":      {},
	"internal/builtin":   {imports: []string{"loader"}},

	"internal/tokenizer/pattern": {imports: []string{"internal/tokenizer/ucd"}},
	"internal/tokenizer/ucd":     {},

	// hardware line
	"internal/backend":             {imports: []string{"quant"}},
	"internal/backend/contract":    {imports: []string{"internal/backend", "quant"}},
	"internal/backend/backendtest": {imports: []string{"internal/backend", "internal/backend/contract"}},
	"internal/cpu":                 {imports: []string{"internal/backend", "quant"}, tests: []string{"internal/backend/backendtest"}},
	"internal/cpu/asmgen":          {},
	"metal":                        {imports: []string{"internal/backend", "internal/gpu", "metal/kernels"}, tests: []string{"internal/backend/backendtest", "internal/families", "internal/gpu/modeltest", "internal/model/modeltest", "internal/selftest", "loader", "metal/internal/check", "metal/internal/msl"}},
	"metal/kernels":                {imports: []string{"quant"}},
	"internal/gpu":                 {imports: []string{"internal/backend", "metal/kernels", "quant"}},
	"internal/gpu/modeltest":       {imports: []string{anything}},
	"internal/gpu/gputest":         {imports: []string{"internal/backend", "quant"}},
	"internal/cuda":                {imports: []string{"internal/backend", "internal/gpu", "metal/kernels"}, tests: []string{"internal/backend/backendtest", "internal/gpu/gputest", "internal/gpu/modeltest", "internal/selftest", "quant"}},

	// metal's tools: no command imports them
	"metal/internal/msl":     {},
	"metal/internal/msl/gen": {imports: []string{"metal/internal/msl"}},
	"metal/internal/check":   {imports: []string{"metal/internal/msl", "metal/kernels"}, tests: []string{"internal/gpu", "internal/gpu/gputest", "internal/backend", "internal/backend/backendtest"}},

	// models
	"internal/model":           {imports: []string{"internal/backend", "loader", "quant"}, tests: []string{"internal/cpu"}},
	"internal/model/nn":        {imports: []string{"internal/model", "internal/backend", "loader", "quant"}, tests: []string{"internal/cpu"}},
	"internal/model/lfm2":      {imports: family, tests: familyTests},
	"internal/model/lfm2moe":   {imports: family, tests: familyTests},
	"internal/model/llama":     {imports: family, tests: familyTests},
	"internal/model/qwen3":     {imports: family, tests: familyTests},
	"internal/model/qwen3moe":  {imports: family, tests: familyTests},
	"internal/model/modeltest": {imports: []string{"internal/model", "internal/backend", "loader", "quant"}},
	"internal/families":        {imports: append(families, "internal/model", "internal/backend", "loader"), tests: familyTests},

	"internal/convert": {imports: []string{"loader", "quant"}, tests: []string{"internal/families", "internal/model/modeltest"}},
	"internal/inspect": {imports: []string{"internal/backend", "internal/chat", "internal/jinja", "internal/tokenizer", "internal/families", "internal/model", "internal/draft/dspark", "loader"}, tests: []string{"internal/model/modeltest", "internal/builtin"}},

	// engine
	"internal/draft":             {imports: []string{"internal/model", "internal/backend"}},
	"internal/draft/dspark":      {imports: []string{"internal/draft", "internal/model", "internal/model/nn", "internal/backend", "loader", "quant"}, tests: familyTests},
	"internal/engine":            {imports: []string{"internal/draft", "internal/model", "internal/backend"}, tests: engineTests},
	"internal/engine/enginetest": {imports: []string{"internal/model", "internal/backend", "quant"}},

	// program
	"stages":             {imports: []string{"pipeline", "jobs", "internal/row", "internal/tokenizer", "internal/jinja", "internal/grammar", "internal/engine", "internal/journal", "internal/regular"}, tests: []string{"internal/builtin", "loader"}},
	"internal/exactness": {tests: []string{anything}},
	"internal/selftest":  {imports: []string{anything}, tests: []string{anything}},
	"internal/gate":      {},
	"cmd/tfbatch":        {imports: []string{anything}},
}

// anything lets a package import every other of ours: the command, which wires them, and the
// tests of the whole.
const anything = "*"

var (
	family      = []string{"internal/model", "internal/model/nn", "internal/backend", "loader", "quant"}
	families    = []string{"internal/model/lfm2", "internal/model/lfm2moe", "internal/model/llama", "internal/model/qwen3", "internal/model/qwen3moe"}
	familyTests = []string{"internal/model/modeltest", "internal/cpu", "internal/builtin", "internal/families"}
	engineTests = []string{"internal/engine/enginetest", "internal/model/modeltest", "internal/draft/dspark", "internal/cpu", "internal/builtin", "internal/families", "internal/tokenizer", "loader", "quant"}
)

func TestImportsFollowTheTable(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	for _, problem := range check(t, root) {
		t.Error(problem)
	}
}

// TestPlantedImportsAreFound runs the check over a tree with one fault per file.
func TestPlantedImportsAreFound(t *testing.T) {
	root := t.TempDir()
	plant := map[string]string{
		"jobs/ok.go":                 "package jobs\n\nimport _ \"strings\"\n",
		"jobs/up.go":                 "package jobs\n\nimport _ \"tfbatch/stages\"\n",
		"quant/quant_darwin.go":      "package quant\n\nimport _ \"tfbatch/metal\"\n",
		"quant/tagged.go":            "//go:build darwin && cgo\n\npackage quant\n\nimport _ \"tfbatch/loader\"\n",
		"internal/row/x_test.go":     "package row_test\n\nimport (\n\t_ \"tfbatch/internal/row\"\n\t_ \"tfbatch/jobs\"\n)\n",
		"internal/newcomer/x.go":     "package newcomer\n",
		"internal/cpu/cpu_test.go":   "package cpu\n\nimport _ \"tfbatch/internal/backend/backendtest\"\n",
		"internal/cpu/cpu.go":        "package cpu\n\nimport _ \"tfbatch/internal/backend/backendtest\"\n",
		"loader/testdata/skipped.go": "package skipped\n\nimport _ \"tfbatch/stages\"\n",
	}
	for name, text := range plant {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"internal/cpu/cpu.go: internal/cpu may not import internal/backend/backendtest",
		"internal/newcomer/x.go: package internal/newcomer has no place in the table",
		"internal/row/x_test.go: internal/row may not import jobs",
		"jobs/up.go: jobs may not import stages",
		"quant/quant_darwin.go: quant may not import metal",
		"quant/tagged.go: quant may not import loader",
	}
	if got := check(t, root); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// check reads every Go file below root and returns a line per fault, sorted.
func check(t *testing.T, root string) []string {
	var problems []string
	for _, name := range goFiles(t, root) {
		found, err := checkFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		problems = append(problems, found...)
	}
	slices.Sort(problems)
	return problems
}

// goFiles names every Go file below root.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skip(name, entry.Name())
		}
		if path.Ext(name) == ".go" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// skip leaves out the folders that the go command leaves out.
func skip(name, base string) error {
	if name != "." && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
		return fs.SkipDir
	}
	return nil
}

func checkFile(root, name string) ([]string, error) {
	pkg := path.Dir(name)
	at, known := table[pkg]
	if !known {
		return []string{fmt.Sprintf("%s: package %s has no place in the table", name, pkg)}, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(name)), nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, errors.Join(errors.New(name), err)
		}
		ours, ok := strings.CutPrefix(target, module+"/")
		if ok && !at.allows(pkg, ours, strings.HasSuffix(name, "_test.go")) {
			problems = append(problems, fmt.Sprintf("%s: %s may not import %s", name, pkg, ours))
		}
	}
	return problems, nil
}

func (p place) allows(pkg, target string, test bool) bool {
	listed := func(list []string) bool { return slices.Contains(list, target) || slices.Contains(list, anything) }
	return listed(p.imports) || test && (target == pkg || listed(p.tests))
}
