package kernels

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tfbatch/quant"
)

func formats() []quant.Format {
	all := []quant.Format{{Kind: quant.BF16}, {Kind: quant.F16}, {Kind: quant.F32}}
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			all = append(all, quant.Format{Kind: quant.Affine, Bits: bits, Group: group})
		}
	}
	return all
}

// random makes a matrix without subnormal numbers.
func random(rng *rand.Rand, f quant.Format, rows, cols int) quant.Matrix {
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32()) | 0x40
		}
		return b
	}
	m := quant.Matrix{Rows: rows, Cols: cols, Format: f, ScaleKind: quant.BF16, Data: fill(rows * f.RowBytes(cols))}
	if f.Kind == quant.Affine {
		m.Scales, m.Biases = fill(2*rows*cols/f.Group), fill(2*rows*cols/f.Group)
	}
	return m
}

// TestPackPutsEveryWordInItsPlace reads a packed weight back by the layout that weight.h
// states, in whatever parts it was packed.
func TestPackPutsEveryWordInItsPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats() {
		const experts, rows = 2, 70
		l := Layout{Format: f, Experts: experts, Rows: rows, Cols: 3 * max(f.Group, 64)}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		codes, scales := make([]byte, l.CodeBytes()), make([]byte, l.ScaleBytes(quant.BF16))
		for e := range experts {
			m := random(rng, f, rows, l.Cols)
			for _, cut := range [][2]int{{41, rows}, {0, 41}} {
				packPart(l, codes, scales, e, m, cut[0], cut[1])
			}
			for r := range rows {
				if got, want := unpackRow(l, codes, e, r), m.Data[r*f.RowBytes(l.Cols):][:f.RowBytes(l.Cols)]; !bytes.Equal(got, want) {
					t.Fatalf("%v: expert %d, row %d: %x, want %x", f, e, r, got, want)
				}
				if f.Kind == quant.Affine {
					checkScales(t, l, scales, e, r, m)
				}
			}
		}
	}
}

// packPart packs rows from..to-1 of m.
func packPart(l Layout, codes, scales []byte, expert int, m quant.Matrix, from, to int) {
	cut := func(b []byte) []byte { return b[len(b)/m.Rows*from : len(b)/m.Rows*to] }
	part := m
	part.Rows, part.Data, part.Scales, part.Biases = to-from, cut(m.Data), cut(m.Scales), cut(m.Biases)
	for _, p := range l.Patches(expert, from, part) {
		for i := range p.Tiles() {
			p.Pack(codes[p.Codes:][:p.CodesLen], scales[p.Scales:][:p.ScalesLen], i)
		}
	}
}

func unpackRow(l Layout, codes []byte, expert, row int) []byte {
	var out []byte
	v := l.vectorWords()
	tile, lane := expert*l.tiles()+row/tileRows, row%tileRows
	for run := range l.units() * l.runs() {
		block := (tile*l.units()*l.runs() + run) * l.runWords() * tileRows
		for w := range l.runWords() {
			out = append(out, codes[4*(block+(w/v*tileRows+lane)*v+w%v):][:4]...)
		}
	}
	return out[:l.Format.RowBytes(l.Cols)]
}

func checkScales(t *testing.T, l Layout, scales []byte, expert, row int, m quant.Matrix) {
	t.Helper()
	for u := range l.units() {
		at := 4 * (((expert*l.tiles()+row/tileRows)*l.units()+u)*tileRows + row%tileRows)
		from := 2 * (row*l.units() + u)
		if want := append(bytes.Clone(m.Scales[from:from+2]), m.Biases[from:from+2]...); !bytes.Equal(scales[at:at+4], want) {
			t.Fatalf("%v: expert %d, row %d, unit %d: %x, want %x", l.Format, expert, row, u, scales[at:at+4], want)
		}
	}
}

func TestSubnormalWeightsBecomeZeros(t *testing.T) {
	bf16 := []byte{0x7f, 0x00, 0x01, 0x80, 0x80, 0x00}
	clearSubnormals(quant.BF16, bf16)
	if want := []byte{0, 0, 0, 0x80, 0x80, 0x00}; !bytes.Equal(bf16, want) {
		t.Errorf("bf16 %x, want %x", bf16, want)
	}
	f32 := []byte{0xff, 0xff, 0x7f, 0x80, 0, 0, 0x80, 0}
	clearSubnormals(quant.F32, f32)
	if want := []byte{0, 0, 0, 0x80, 0, 0, 0x80, 0}; !bytes.Equal(f32, want) {
		t.Errorf("f32 %x, want %x", f32, want)
	}
}

// TestEveryFormatCoversItsRows holds the choice of kernels to one that covers rows and tiles
// with few rows to spare.
func TestEveryFormatCoversItsRows(t *testing.T) {
	for _, f := range formats() {
		k, err := kernelsFor(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 2, 3, 4, 7, 8, 33, 512} {
			for _, tiles := range []int{1, 3, 64, 96, 368, 4000} {
				s := choose(k.rows, rows, tiles)
				g := s.grid(rows, tiles)
				if int(g[1])*s.rows < rows || int(g[0])*s.tiles < tiles || s.rows > 1 && s.rows >= 2*rows {
					t.Errorf("%v: %d rows, %d tiles: %dx%d in a grid of %v", f, rows, tiles, s.rows, s.tiles, g)
				}
			}
		}
	}
}

func TestLayoutsThatNoKernelReads(t *testing.T) {
	affine := func(bits, group int) quant.Format {
		return quant.Format{Kind: quant.Affine, Bits: bits, Group: group}
	}
	for _, l := range []Layout{
		{affine(7, 64), 1, 32, 64}, {affine(4, 48), 1, 32, 96}, {affine(4, 64), 1, 32, 96}, {affine(4, 64), 1, 0, 64},
		{affine(4, 64), 0, 32, 64}, {quant.Format{Kind: 200}, 1, 32, 64}, {quant.Format{}, 1, 32, -1},
	} {
		if l.Check() == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

// TestGroupsHaveRoom holds MaxBlocks to the worst cases.
func TestGroupsHaveRoom(t *testing.T) {
	for _, pairs := range []int{1, 5, 17, 64, 300} {
		for _, experts := range []int{1, 4, 64} {
			size, _ := blockSize(pairs, experts)
			// All but one expert have one pair, and the rest share what is left.
			alone := min(experts-1, pairs)
			worst := alone + ceilDiv(pairs-alone, size)
			if room := MaxBlocks(pairs, experts); room < worst {
				t.Errorf("%d pairs of %d experts: room for %d blocks, want %d", pairs, experts, room, worst)
			}
		}
	}
}

func TestSourceRefusesUnknownFiles(t *testing.T) {
	if _, err := Source("nothing"); err == nil {
		t.Error("a file that is not there has a source")
	}
}
