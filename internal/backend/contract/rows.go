package contract

import (
	"fmt"
	"math/rand/v2"

	"tfbatch/internal/backend"
)

func rowChecks() []Check {
	all := []Check{
		{"rms norm", normWhole},
		{"rms norm/heads", normHeads},
		{"swiglu", swiglu},
		{"add", add},
		{"bias", bias},
		{"gather", gather},
		{"tap", tap},
		{"top", top},
	}
	for _, f := range storages() {
		all = append(all, Check{fmt.Sprintf("embed/%v", f), func(l *lab) { embed(l, f) }})
	}
	return all
}

func embed(l *lab, f storage) {
	for _, v := range []values{gauss, tiny, odd} {
		cols := f.cols(37)
		table, seen := l.weight(f, cols, v, 50, 3)
		ids := []int32{0, 52, 17, 16, 15, 17, 51}
		out := l.empty(len(ids), cols)
		want := make(matrix, len(ids))
		for i, id := range ids {
			want[i] = seen.row(int(id))
		}
		l.equal("embed", l.run(out, func(p backend.Pass) { p.Embed(out, table, ids) }), want)
	}
}

// widths are the columns of elementwise operators: whole vectors, remainders, less than one.
func widths() []int { return []int{1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 100, 256, 1000, 2048, 5003} }

func normWhole(l *lab) {
	for _, h := range widths() {
		for _, v := range []values{gauss, cancelling, tiny, odd} {
			x, gain := l.draw(3, h, v), l.draw(1, h, gauss)
			in, g, out := l.buffer(x), l.buffer(gain), l.empty(3, h)
			want := newMatrix(3, h)
			for i, row := range flushed(x) {
				want[i] = norm(row, gain[0], 1e-5)
			}
			l.equal(fmt.Sprintf("width %d", h), l.run(out, func(p backend.Pass) { p.RMSNorm(out, in, g, 1e-5) }), want)
			l.equal("in place", l.run(in, func(p backend.Pass) { p.RMSNorm(in, in, g, 1e-5) }), want)
		}
	}
}

func normHeads(l *lab) {
	for _, dim := range []int{1, 6, 32, 64, 80} {
		x, gain := l.draw(4, 3*dim, gauss), l.draw(1, dim, gauss)
		in, g, out := l.buffer(x), l.buffer(gain), l.empty(4, 3*dim)
		want := newMatrix(4, 0)
		for i, row := range x {
			for at := 0; at < len(row); at += dim {
				want[i] = append(want[i], norm(row[at:at+dim], gain[0], 1e-6)...)
			}
		}
		l.equal(fmt.Sprintf("heads of %d", dim), l.run(out, func(p backend.Pass) { p.RMSNorm(out, in, g, 1e-6) }), want)
	}
}

func swiglu(l *lab) {
	wide := func(scale float32) values {
		return func(rng *rand.Rand) float32 { return gauss(rng) * scale }
	}
	for _, f := range widths() {
		for _, v := range []values{wide(3), wide(60), tiny, odd} {
			gu := l.draw(3, 2*f, v)
			in, out := l.buffer(gu), l.empty(3, f)
			want := newMatrix(3, f)
			for i, row := range flushed(gu) {
				for j := range f {
					want[i][j] = backend.Flush(float32(backend.SiLU(row[j]) * row[f+j]))
				}
			}
			l.equal(fmt.Sprintf("width %d", f), l.run(out, func(p backend.Pass) { p.SwiGLU(out, in) }), want)
		}
	}
}

func add(l *lab) {
	for _, h := range widths() {
		for _, v := range []values{cancelling, tiny, odd} {
			a, b := l.draw(9, h, v), l.draw(9, h, v)
			x, y, out := l.buffer(a), l.buffer(b), l.empty(9, h)
			fa, fb, want := flushed(a), flushed(b), newMatrix(9, h)
			for i := range want {
				for j := range want[i] {
					want[i][j] = backend.Flush(float32(fa[i][j] + fb[i][j]))
				}
			}
			l.equal(fmt.Sprintf("width %d", h), l.run(out, func(p backend.Pass) { p.Add(out, x, y) }), want)
			l.equal("onto the right", l.run(y, func(p backend.Pass) { p.Add(y, x, y) }), want)
			y = l.buffer(b)
			l.equal("onto the left", l.run(x, func(p backend.Pass) { p.Add(x, x, y) }), want)
		}
	}
}

func bias(l *lab) {
	for _, h := range widths() {
		a, b := l.draw(4, h, cancelling), l.draw(1, h, cancelling)
		x, y, want := l.buffer(a), l.buffer(b), newMatrix(4, h)
		for i := range want {
			for j := range want[i] {
				want[i][j] = backend.Flush(float32(a[i][j] + b[0][j]))
			}
		}
		l.equal(fmt.Sprintf("width %d", h), l.run(x, func(p backend.Pass) { p.Bias(x, y) }), want)
	}
}

func gather(l *lab) {
	a := l.draw(7, 33, gauss)
	src, out := l.buffer(a), l.empty(5, 33)
	got := l.run(out, func(p backend.Pass) { p.Gather(out, src, []int32{6, 0, 3, 3, 5}) })
	l.equal("gather", got, matrix{a[6], a[0], a[3], a[3], a[5]})
}

func tap(l *lab) {
	a, b := l.draw(3, 20, gauss), l.draw(3, 20, gauss)
	x, y, out := l.buffer(a), l.buffer(b), l.empty(3, 40)
	want := newMatrix(3, 0)
	for i := range want {
		want[i] = append(append(want[i], b[i]...), a[i]...)
	}
	got := l.run(out, func(p backend.Pass) {
		t, ok := p.(backend.TapPass)
		if !ok {
			l.absent("the device has no taps")
		}
		t.Tap(out, x, 1)
		t.Tap(out, y, 0)
	})
	l.equal("taps", got, want)
}

// top works on a view: only its rows are written, and a later view still sees them.
func top(l *lab) {
	a, b, old := l.draw(5, 24, gauss), l.draw(5, 24, gauss), l.draw(5, 24, gauss)
	x, y, out := l.buffer(a), l.buffer(b), l.buffer(old)
	want := matrix{nil, nil, old[2], old[3], old[4]}
	for i := range 2 {
		want[i] = make([]float32, 24)
		for j := range want[i] {
			want[i][j] = float32(a[i][j] + b[i][j])
		}
	}
	got := l.run(out, func(p backend.Pass) { p.Add(out.Top(2), x.Top(2), y.Top(2)) })
	l.equal("top", got, want)
}
