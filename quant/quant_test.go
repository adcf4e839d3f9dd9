package quant

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

//go:embed testdata/affine.json
var affineJSON []byte

// mlxGolden is affine.json; testdata/affine.py says what it holds.
type mlxGolden struct {
	Rows, Cols int
	Weights    map[string][]byte
	Cases      []struct {
		Type                  string
		Bits, Group           int
		Codes, Scales, Biases []byte
		Decoded               string
	}
}

func kindOf(name string) Kind { return map[string]Kind{"bf16": BF16, "f16": F16, "f32": F32}[name] }

func TestEncodeAndDecodeAreMLXs(t *testing.T) {
	var g mlxGolden
	if err := json.Unmarshal(affineJSON, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) != 3*6*3 {
		t.Fatalf("%d cases", len(g.Cases))
	}
	for _, c := range g.Cases {
		kind := kindOf(c.Type)
		f := Format{Affine, c.Bits, c.Group}
		t.Run(fmt.Sprintf("%s/%v", c.Type, f), func(t *testing.T) {
			got, err := Encode(Matrix{Rows: g.Rows, Cols: g.Cols, Format: Format{Kind: kind}, Data: g.Weights[c.Type]}, f)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Check(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Data, c.Codes) || !bytes.Equal(got.Scales, c.Scales) || !bytes.Equal(got.Biases, c.Biases) {
				t.Errorf("codes %x, scales %x, biases %x\nwant  %x, %x, %x", got.Data, got.Scales, got.Biases, c.Codes, c.Scales, c.Biases)
			}
			theirs := Matrix{Rows: g.Rows, Cols: g.Cols, Format: f, Data: c.Codes, ScaleKind: kind, Scales: c.Scales, Biases: c.Biases}
			if sum := sha256.Sum256(decoded(theirs)); hex.EncodeToString(sum[:]) != c.Decoded {
				t.Error("decoded values differ")
			}
		})
	}
}

// decoded is m in float32, little-endian.
func decoded(m Matrix) (out []byte) {
	row := make([]float64, m.Cols)
	for r := range m.Rows {
		m.Row(row, r)
		for _, x := range row {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		}
	}
	return out
}

func TestWidenKeepsEveryWeight(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	m := Matrix{Rows: 3, Cols: 128, Format: Format{Kind: F32}}
	for range m.Rows * m.Cols {
		m.Data = F32.Append(m.Data, float32(rng.NormFloat64()))
	}
	all := []int{2, 3, 4, 5, 6, 8}
	for i, from := range all {
		narrow, err := Encode(m, Format{Affine, from, 32})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range all[i:] {
			wide := narrow.Widen(to)
			if err := wide.Check(); err != nil || wide.Format.Bits != to || !bytes.Equal(decoded(wide), decoded(narrow)) {
				t.Errorf("%d bits in %d: error %v, or other weights", from, to, err)
			}
		}
	}
}

func TestEveryHalfSurvives(t *testing.T) {
	for bits := range 1 << 16 {
		h := binary.LittleEndian.AppendUint16(nil, uint16(bits))
		for _, k := range []Kind{BF16, F16} {
			x := k.Float(h)
			if x == x && !bytes.Equal(k.Append(nil, x), h) {
				t.Fatalf("%v: %x widens to %x and comes back as %x", Format{Kind: k}, h, x, k.Append(nil, x))
			}
		}
	}
}

// TestHalvesAreNearest compares rounding with the two neighbours, halfway points included.
func TestHalvesAreNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		h := uint16(rng.IntN(0x7bff)) // finite, and so is the next
		lo, hi := widenF16(h), widenF16(h+1)
		middle := lo + (hi-lo)/2 // exact
		even := h + h&1
		for x, want := range map[float32]uint16{
			middle: even, math.Nextafter32(middle, 0): h, math.Nextafter32(middle, 1e9): h + 1,
		} {
			if got := roundF16(x); got != want {
				t.Fatalf("%x rounds to %04x, want %04x", x, got, want)
			}
			if got := roundF16(-x); got != want|0x8000 {
				t.Fatalf("%x rounds to %04x, want %04x", -x, got, want|0x8000)
			}
		}
	}
	for x, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, 0x1p-25: 0, 0x1.8p-25: 1} {
		if got := roundF16(x); got != want {
			t.Errorf("%v rounds to %04x, want %04x", x, got, want)
		}
	}
}

func TestBF16IsNearest(t *testing.T) {
	for bits, want := range map[uint32]uint16{0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82, 0x7f7fffff: 0x7f80, 0x00000001: 0} {
		if got := binary.LittleEndian.Uint16(BF16.Append(nil, math.Float32frombits(bits))); got != want {
			t.Errorf("%08x rounds to %04x, want %04x", bits, got, want)
		}
	}
}

func TestWhatCannotBeEncodedIsRefused(t *testing.T) {
	dense := func(cols int, x float32) Matrix {
		m := Matrix{Rows: 2, Cols: cols, Format: Format{Kind: F32}, Data: make([]byte, 8*cols)}
		binary.LittleEndian.PutUint32(m.Data[4*(cols+33):], math.Float32bits(x))
		return m
	}
	huge := dense(64, 3e38)
	for i := range 64 {
		binary.LittleEndian.PutUint32(huge.Data[4*i:], math.Float32bits(3e38))
	}
	four := Format{Affine, 4, 32}
	for _, c := range []struct {
		want string
		m    Matrix
		f    Format
	}{
		{"row 1, inputs 32 to 63: a NaN", dense(64, float32(math.NaN())), four},
		{"row 1, inputs 32 to 63", dense(64, float32(math.Inf(-1))), four},
		{"row 0, inputs 0 to 31", huge, four},
		{"cannot become affine4/32", dense(80, 0), four},
		{"cannot become bf16", dense(64, 0), Format{Kind: BF16}},
		{"7 bits", dense(64, 0), Format{Affine, 7, 32}},
		{"groups of 16", dense(64, 0), Format{Affine, 4, 16}},
		{"bytes of codes", Matrix{Rows: 1, Cols: 32, Format: Format{Kind: F32}, Data: make([]byte, 8)}, four},
	} {
		if _, err := Encode(c.m, c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		mode        string
		bits, group int
		want        string
	}{
		{"", 4, 64, "affine4/64"},
		{"affine", 5, 128, "affine5/128"},
		{"affine", 1, 64, "1 bits"},
		{"affine", 4, 0, "groups of 0"},
		{"mxfp4", 4, 32, "micro-scaling"},
		{"nvfp4", 4, 16, "micro-scaling"},
		{"mxfp8", 8, 32, "micro-scaling"},
		{"ternary", 2, 64, `mode "ternary"`},
	} {
		f, err := ParseFormat(c.mode, c.bits, c.group)
		if got := fmt.Sprint(f, err); !strings.Contains(got, c.want) {
			t.Errorf("%q, %d, %d: %s, want %q", c.mode, c.bits, c.group, got, c.want)
		}
	}
	for _, f := range []Format{{Kind: BF16, Bits: 4}, {Kind: F32, Group: 64}, {Kind: Affine + 1}, {Kind: Affine, Group: 64}} {
		if f.Check() == nil {
			t.Errorf("%+v passes", f)
		}
	}
}

func TestMatricesThatDoNotAddUp(t *testing.T) {
	good := Matrix{Rows: 2, Cols: 64, Format: Format{Affine, 4, 32}, Data: make([]byte, 64), Scales: make([]byte, 8), Biases: make([]byte, 8)}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Matrix){
		"no rows":       func(m *Matrix) { m.Rows = 0 },
		"cut group":     func(m *Matrix) { m.Cols = 48; m.Data = m.Data[:48] },
		"few codes":     func(m *Matrix) { m.Data = m.Data[1:] },
		"few scales":    func(m *Matrix) { m.Scales = m.Scales[2:] },
		"many biases":   func(m *Matrix) { m.Biases = make([]byte, 16) },
		"affine scales": func(m *Matrix) { m.ScaleKind = Affine },
		"no group":      func(m *Matrix) { m.Format.Group = 0 },
	} {
		m := good
		change(&m)
		if m.Check() == nil {
			t.Errorf("%s: passes", name)
		}
	}
}

// FuzzCodes packs what it unpacks.
func FuzzCodes(f *testing.F) {
	f.Add([]byte("any bytes are codes"), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, pick uint8) {
		bits := []int{2, 3, 4, 5, 6, 8}[pick%6]
		data = data[:len(data)/bits*bits]
		codes := make([]uint8, len(data)/bits*codesPerPack)
		Unpack(codes, data, bits)
		for i, q := range codes {
			if int(q)>>bits != 0 || q != bitString(data, i*bits, bits) {
				t.Fatalf("code %d of %x in %d bits: %d, want %d", i, data, bits, q, bitString(data, i*bits, bits))
			}
		}
		if back := appendPacked(nil, codes, bits); !bytes.Equal(back, data) {
			t.Fatalf("%x comes back as %x", data, back)
		}
	})
}

// bitString is the number in n bits of data from bit at on, one bit at a time.
func bitString(data []byte, at, n int) (x uint8) {
	for i := range n {
		x |= data[(at+i)/8] >> ((at + i) % 8) & 1 << i
	}
	return x
}

// FuzzEncode decodes to within what the formula allows.
func FuzzEncode(f *testing.F) {
	f.Add(int64(1), uint8(0), float32(1), float32(0))
	f.Add(int64(2), uint8(9), float32(1e-9), float32(3))
	f.Add(int64(3), uint8(17), float32(1e30), float32(-1e30))
	f.Fuzz(func(t *testing.T, seed int64, pick uint8, spread, center float32) {
		bits, group := []int{2, 3, 4, 5, 6, 8}[pick%6], 32<<(pick/6%3)
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		m := Matrix{Rows: 1, Cols: group, Format: Format{Kind: F32}}
		lo, hi := float32(math.Inf(1)), float32(math.Inf(-1))
		for range group {
			x := center + spread*rng.Float32()
			lo, hi = min(lo, x), max(hi, x)
			m.Data = F32.Append(m.Data, x)
		}
		got, err := Encode(m, Format{Affine, bits, group})
		if err != nil {
			if finite := hi-lo <= math.MaxFloat32 && max(hi, -lo) < 1e30; finite {
				t.Fatal(err)
			}
			return
		}
		// Rounding costs half a step. The far end of the group is a whole number of steps away, at least
		// half of all there are, and so the near end is lost by up to another.
		step := max(float64(hi-lo)/float64(uint(1)<<bits-1), leastScale)
		most := 1.5*step + 1e-6*max(math.Abs(float64(hi)), math.Abs(float64(lo)))
		row, want := make([]float64, group), make([]float64, group)
		got.Row(row, 0)
		m.Row(want, 0)
		for i := range row {
			if !(math.Abs(row[i]-want[i]) <= most) {
				t.Fatalf("weight %v comes back as %v; lo %v, hi %v", want[i], row[i], lo, hi)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	m := Matrix{Rows: 64, Cols: 2048, Format: Format{Kind: BF16}, Data: make([]byte, 2*64*2048)}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range m.Rows * m.Cols {
		BF16.Append(m.Data[:2*i], float32(rng.NormFloat64()))
	}
	for _, bits := range []int{4, 6, 8} {
		f := Format{Affine, bits, 64}
		b.Run(f.String(), func(b *testing.B) {
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				if _, err := Encode(m, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
