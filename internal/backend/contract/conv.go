package contract

import (
	"fmt"

	"tfbatch/internal/backend"
)

func convChecks() []Check {
	var all []Check
	for _, c := range []struct {
		channels, kernel int
		biased           bool
		v                values
	}{
		{64, 3, false, gauss}, {17, 3, true, cancelling}, {300, 4, false, cancelling}, {520, 3, true, gauss}, {32, 1, false, gauss}, {48, 2, false, tiny}, {40, 3, false, odd},
	} {
		name := fmt.Sprintf("short conv/%d channels, %d taps, bias %v", c.channels, c.kernel, c.biased)
		all = append(all, Check{name, func(l *lab) { shortConv(l, c.channels, c.kernel, c.biased, c.v) }})
	}
	return all
}

// shortConv runs two lanes through ragged batches, some longer than the ring, with cuts back.
func shortConv(l *lab, channels, kernel int, biased bool, v values) {
	d, ok := l.d.(backend.ConvDevice)
	if !ok {
		l.absent("the device has no convolution")
	}
	const ring = 8
	state, err := d.NewConv(backend.ConvShape{Layers: 2, Lanes: 2, Channels: channels, Kernel: kernel, Ring: ring})
	l.ok("new conv", err)
	taps := l.draw(channels, kernel, gauss)
	w := l.buffer(taps)
	var offset backend.Buffer
	var offsets matrix
	if biased {
		offsets = l.draw(1, channels, gauss)
		offset = l.buffer(offsets)
	}
	history := make([]matrix, 2) // [lane][position][channel]
	for _, spans := range [][]span{
		{{0, 0, 1}}, {{1, 0, 19}, {0, 1, 2}}, {{0, 2, 5}, {1, 19, 20}}, {{0, 3, 4}, {1, 20, 26}}, {{1, 22, 25}}, {{0, 4, 7}, {1, 25, 26}},
	} {
		r := (&lanes{}).batch(spans...)
		bcx := l.draw(len(r.Lane), 3*channels, v)
		in, out := l.buffer(bcx), l.empty(len(r.Lane), channels)
		want := newMatrix(len(r.Lane), channels)
		for i, row := range flushed(bcx) {
			lane, pos := r.Lane[i], int(r.Pos[i])
			u := make([]float32, channels)
			for c := range u {
				u[c] = backend.Flush(float32(row[c] * row[2*channels+c]))
			}
			history[lane] = append(history[lane][:pos], u)
			for c := range u {
				column := make([]float32, pos+1)
				for at := range column {
					column[at] = history[lane][at][c]
				}
				var b *float32
				if biased {
					b = &offsets[0][c]
				}
				want[i][c] = convolve(column, pos, taps[c], b, row[channels+c])
			}
		}
		got := l.run(out, func(p backend.Pass) { p.(backend.ConvPass).ShortConv(out, in, w, offset, state, 1, r) })
		l.equal(fmt.Sprintf("spans %v", spans), got, want)
	}
}
