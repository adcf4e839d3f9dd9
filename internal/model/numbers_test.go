package model

import (
	"encoding/binary"
	"math"
	"testing"

	"tfbatch/quant"
)

func TestFiniteOfEveryHalf(t *testing.T) {
	data := make([]byte, 22) // two full words and a rest
	for _, kind := range []quant.Kind{quant.BF16, quant.F16} {
		for bits := range 1 << 16 {
			at := bits % 11 * 2
			binary.LittleEndian.PutUint16(data[at:], uint16(bits))
			exponent := uint16(0x7f80)
			if kind == quant.F16 {
				exponent = 0x7c00
			}
			if got, want := finite(data, kind), uint16(bits)&exponent != exponent; got != want {
				t.Fatalf("kind %d, bits %#x at byte %d: finite %t", kind, bits, at, got)
			}
			binary.LittleEndian.PutUint16(data[at:], 0)
		}
	}
}

func TestFiniteOfFloats(t *testing.T) {
	for at := range 5 {
		for _, x := range []float32{0, -0, 1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			data := make([]byte, 20)
			binary.LittleEndian.PutUint32(data[4*at:], math.Float32bits(x))
			want := !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
			if got := finite(data, quant.F32); got != want {
				t.Errorf("%v at %d: finite %t", x, at, got)
			}
		}
	}
}

func TestWiden(t *testing.T) {
	for _, c := range []struct {
		kind quant.Kind
		bits uint32
		want float32
	}{
		{quant.BF16, 0x3f80, 1}, {quant.BF16, 0xc040, -3}, {quant.BF16, 0x0001, 0}, {quant.BF16, 0x807f, 0},
		{quant.F16, 0x3c00, 1}, {quant.F16, 0xc200, -3}, {quant.F16, 0x0001, 0x1p-24}, {quant.F16, 0x83ff, -0x3ffp-24},
		{quant.F16, 0x7bff, 65504}, {quant.F16, 0x0400, 0x1p-14}, {quant.F16, 0x3555, 0.333251953125},
		{quant.F32, 0x3f800000, 1}, {quant.F32, 0x00800000, 0x1p-126}, {quant.F32, 0x007fffff, 0}, {quant.F32, 0x80000001, 0},
	} {
		data := binary.LittleEndian.AppendUint32(nil, c.bits)
		if got := widen(data[:quant.Format{Kind: c.kind}.RowBytes(1)], c.kind); len(got) != 1 || got[0] != c.want {
			t.Errorf("kind %d, bits %#x: %v, want %v", c.kind, c.bits, got, c.want)
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	data := make([]byte, 8<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !finite(data, quant.BF16) {
			b.Fatal("zeros are not finite")
		}
	}
}
