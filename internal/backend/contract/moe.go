package contract

import (
	"fmt"
	"math/rand/v2"

	"tfbatch/internal/backend"
)

func expertChecks(storages []storage) []Check {
	var all []Check
	for _, f := range storages {
		all = append(all, Check{fmt.Sprintf("experts/%v", f), func(l *lab) {
			for _, rows := range []int{1, 2, 7, 40} {
				mixture(l, f, rows, 8, backend.Router{TopK: 2, Normalize: true, Scale: 1}, gauss)
			}
			mixture(l, f, 5, 32, backend.Router{TopK: 4, Normalize: true, Scale: 2.5}, gauss)
			mixture(l, f, 3, 3, backend.Router{TopK: 3, Scale: 0.5}, gauss)
			mixture(l, f, 6, 5, backend.Router{TopK: 1, Scale: 1}, gauss)
			mixture(l, f, 7, 33, backend.Router{TopK: 4, Softmax: true, Normalize: true, Scale: 1}, gauss)
			mixture(l, f, 7, 40, backend.Router{TopK: 3, Softmax: true, Scale: 0.5}, gauss)
		}})
	}
	return all
}

func moeChecks() []Check {
	return append(expertChecks(storages()),
		Check{"experts/ties", func(l *lab) {
			mixture(l, bf16Storage(), 30, 16, backend.Router{TopK: 4, Normalize: true, Scale: 1}, coarse)
		}},
		Check{"experts/odd values", func(l *lab) {
			mixture(l, bf16Storage(), 60, 16, backend.Router{TopK: 4, Normalize: true, Scale: 1}, odd)
		}},
		Check{"experts/softmax", func(l *lab) {
			for _, v := range []values{coarse, odd, gauss} {
				mixture(l, bf16Storage(), 60, 16, backend.Router{TopK: 4, Softmax: true, Normalize: true, Scale: 1}, v)
				mixture(l, bf16Storage(), 60, 128, backend.Router{TopK: 8, Softmax: true, Scale: 1}, v)
			}
		}},
	)
}

// coarse makes equal values.
func coarse(rng *rand.Rand) float32 { return float32(rng.IntN(3)) }

// mixture routes rows, multiplies them by the chosen experts twice (shared inputs, then one
// input a rank) and combines.
func mixture(l *lab, f storage, rows, experts int, cfg backend.Router, v values) {
	d, ok := l.d.(backend.MoEDevice)
	if !ok {
		l.absent("the device has no experts")
	}
	hidden, inner := f.cols(70), f.cols(33)
	up, upSeen := l.experts(f, experts, inner, hidden)
	down, downSeen := l.experts(f, experts, hidden, inner)
	all, err := d.NewRoutes(rows+3, cfg.TopK)
	l.ok("new routes", err)
	routes := all.Top(rows)
	logits, bias, x := l.draw(rows, experts, v), l.draw(1, experts, coarse), l.draw(rows, hidden, gauss)
	lb, bb, xb := l.buffer(logits), l.buffer(bias), l.buffer(x)
	if cfg.Softmax {
		bias, bb = matrix{nil}, nil
	}
	a, b, out := l.empty(rows*cfg.TopK, inner), l.empty(rows*cfg.TopK, hidden), l.empty(rows, hidden)
	record := func(p backend.Pass) {
		m := p.(backend.MoEPass)
		m.Route(routes, lb, bb, cfg)
		m.ExpertMatMul(a, xb, up, routes)
		m.ExpertMatMul(b, a, down, routes)
		m.Combine(out, b, routes)
	}
	wantA, wantB, want := newMatrix(0, 0), newMatrix(0, 0), newMatrix(rows, 0)
	for i, row := range flushed(logits) {
		chosen, weights := choose(row, bias[0], cfg)
		var ys [][]float32
		for _, e := range chosen {
			h := upSeen[e].product(matrix{x[i]})[0]
			y := downSeen[e].product(matrix{h})[0]
			wantA, wantB, ys = append(wantA, h), append(wantB, y), append(ys, y)
		}
		want[i] = combine(weights, ys)
	}
	what := fmt.Sprintf("%d rows, %d of %d experts", rows, cfg.TopK, experts)
	l.equal(what+", first", l.run(a, record), wantA)
	l.equal(what+", second", l.run(b, record), wantB)
	l.equal(what, l.run(out, record), want)
}
