package tokenizer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tfbatch/internal/builtin"
)

// gopher is the tokenizer of the built-in model.
func gopher(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Parse(gopherFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func gopherFile(t testing.TB) []byte {
	t.Helper()
	model, err := builtin.Open("gopher-15m")
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(model, "tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// code is the text of this package, some 50 kB that do not repeat.
func code(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// benchmarked are gopher and, with -oracle, the published tokenizers.
func benchmarked(b *testing.B) map[string]*Tokenizer {
	all := map[string]*Tokenizer{"gopher": gopher(b)}
	if *oracle != "" {
		for _, name := range []string{"llama3_1", "qwen3", "gptoss"} {
			all[name] = load(b, filepath.Join(*oracle, name+".json"))
		}
	}
	return all
}

func BenchmarkEncode(b *testing.B) {
	texts := map[string]string{
		"code":     code(b),
		"prose":    "Every programmer who's read it won't forget: 12 simple, unordinary sentences.\nThe grey fox leapt over 3,452 fences; nobody counted them twice.\n",
		"chinese":  strings.Repeat("敏捷的棕色狐狸跳过了懒狗，然后消失在森林的深处。", 40),
		"spaces":   strings.Repeat(" ", 1<<20),
		"a letter": strings.Repeat("a", 1<<20),
		"emoji":    strings.Repeat("👍🏽", 1<<17),
	}
	for name, tok := range benchmarked(b) {
		for kind, text := range texts {
			b.Run(fmt.Sprintf("%s/%s", name, kind), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				ids := 0
				for b.Loop() {
					ids += len(tok.Encode(text))
				}
				b.ReportMetric(float64(ids)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, tok := range benchmarked(b) {
		ids := tok.Encode(code(b))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				tok.Decode(ids)
			}
			b.ReportMetric(float64(len(ids)*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

func BenchmarkParse(b *testing.B) {
	file := gopherFile(b)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := Parse(file); err != nil {
			b.Fatal(err)
		}
	}
}
