package pattern

import (
	"strings"
	"testing"
)

const (
	llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

func BenchmarkAll(b *testing.B) {
	english := strings.Repeat("The quick brown fox, aged 37, doesn't jump over 12 lazy dogs.\n\tif err != nil { return err }\n", 1000)
	chinese := strings.Repeat("敏捷的棕色狐狸跳过了懒狗。Быстрая лиса.\n", 1000)
	for _, p := range []struct{ name, expr string }{{"llama3", llama3}, {"o200k", o200k}, {"gpt2", gpt2}} {
		for _, x := range []struct{ name, text string }{{"english", english}, {"other", chinese}} {
			b.Run(p.name+"/"+x.name, func(b *testing.B) {
				pat, err := Compile(p.expr)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(x.text)))
				for b.Loop() {
					for range pat.All(x.text) {
					}
				}
			})
		}
	}
}
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		Compile(o200k)
	}
}
