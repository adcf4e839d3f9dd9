package selftest

import (
	"context"
	"math"

	"tfbatch/internal/backend"
)

// tampered is a device that turns the lowest bit of the first value that is read from each pass.
type tampered struct{ backend.Device }

func (t tampered) Begin() backend.Pass { return &tamperedPass{Pass: t.Device.Begin()} }

type tamperedPass struct {
	backend.Pass
	read []float32
}

func (p *tamperedPass) Read(dst []float32, src backend.Buffer) {
	p.read = dst
	p.Pass.Read(dst, src)
}

func (p *tamperedPass) Commit(ctx context.Context) error {
	err := p.Pass.Commit(ctx)
	if len(p.read) > 0 {
		p.read[0] = math.Float32frombits(math.Float32bits(p.read[0]) ^ 1)
	}
	return err
}
