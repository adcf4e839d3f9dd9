package exactness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tfbatch/internal/builtin"
	"tfbatch/internal/convert"
	"tfbatch/internal/cpu"
	"tfbatch/loader"
	"tfbatch/quant"
)

// coded is gopher-15m in codes of some bits, computed in i8-v1. The zero value is the model as it is, in fma-v1.
type coded struct {
	bits   int
	folder string
}

// codedBits are the codes that kernels of i8-v1 treat differently: four of a byte's half, a byte, and those
// that are unpacked first.
func codedBits() []int { return []int{4, 6, 8} }

// encode makes the model.
func encode(t *testing.T, bits int) coded {
	t.Helper()
	from, err := builtin.Open("gopher-15m")
	if err != nil {
		t.Fatal(err)
	}
	p, err := convert.Open(from, quant.Format{Kind: quant.Affine, Bits: bits, Group: 32})
	if err != nil {
		t.Fatal(err)
	}
	c := coded{bits, filepath.Join(t.TempDir(), "coded")}
	if err := p.Write(t.Context(), c.folder, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c coded) int8() bool { return c.bits > 0 }

// key is the name of a hash among the golden ones.
func (c coded) key(name string) string {
	if !c.int8() {
		return name
	}
	return fmt.Sprintf("i8-v1 %d bits: %s", c.bits, name)
}

func (c coded) snapshot(t *testing.T) *loader.Snapshot {
	t.Helper()
	s, err := loader.Open(os.DirFS(c.folder))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInt8GivesOneSetOfHashes is the matrix in i8-v1, with the shortest prompts.
func TestInt8GivesOneSetOfHashes(t *testing.T) {
	golden := readGolden(t)
	for _, bits := range codedBits() {
		c := encode(t, bits)
		for i, s := range matrix() {
			if !*full && (s.isa == cpu.Portable || bits != 4) && i%3 != bits%3 {
				continue // slow, or kernels that differ little from those of 4 bits
			}
			s.coded = c
			t.Run(fmt.Sprintf("%d bits,%v", bits, s), func(t *testing.T) {
				for _, fault := range differences(golden, run(t, s, min(s.requests(), some), false)) {
					t.Error(fault)
				}
			})
		}
		s := setup{lanes: 16, chunk: 64, threads: 2, coded: c}
		if len(differences(golden, run(t, s, some, true))) == 0 {
			t.Errorf("%d bits: a device whose wide products round differently gave the golden hashes", bits)
		}
	}
}
