package exactness

import (
	"encoding/binary"
	"hash/fnv"
	"math"

	"tfbatch/internal/backend"
	"tfbatch/internal/cpu"
)

// listener is the CPU device with an ear at its logits. A token hash changes only when a
// changed bit happens to decide a draw, about once in a million; the logits show every bit.
type listener struct {
	*cpu.Device
	uneven bool   // the planted fault, see listenPass.MatMul
	sum    uint64 // of a hash of every row of logits that was read: free of their order
}

func (d *listener) Begin() backend.Pass {
	return &listenPass{Pass: d.Device.Begin().(*cpu.Pass), dev: d}
}

type listenPass struct {
	*cpu.Pass
	dev *listener
}

func (p *listenPass) Read(dst []float32, src backend.Buffer) {
	p.Pass.Read(dst, src) // the CPU device reads at once
	rows, cols := src.Shape()
	for i := range rows {
		p.dev.sum += hash(dst[i*cols : (i+1)*cols])
	}
}

func hash(logits []float32) uint64 {
	h := fnv.New64a()
	var b [4]byte
	for _, x := range logits {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		h.Write(b[:])
	}
	return h.Sum64()
}

// MatMul of an uneven device rounds products of more than four rows once more, as if their
// sums ran in another order.
func (p *listenPass) MatMul(dst, x backend.Buffer, w backend.Weight) {
	p.Pass.MatMul(dst, x, w)
	if rows, _ := dst.Shape(); p.dev.uneven && rows > 4 {
		p.shift(dst, 1)
		p.shift(dst, -1)
	}
}

// shift adds by to every value of dst.
func (p *listenPass) shift(dst backend.Buffer, by float32) {
	_, cols := dst.Shape()
	b, err := p.dev.NewBuffer(1, cols)
	if err != nil {
		panic(err)
	}
	row := make([]float32, cols)
	for i := range row {
		row[i] = by
	}
	if err := p.dev.Write(b, row); err != nil {
		panic(err)
	}
	p.Pass.Bias(dst, b)
}
