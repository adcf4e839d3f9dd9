package cpu

import (
	"fmt"

	"tfbatch/internal/backend"
)

// Routes are the chosen experts of every row and their weights, rank by rank.
type Routes struct {
	dev        *Device
	rows, topK int
	experts    []int32   // [rows][topK]
	weights    []float32 // [rows][topK]
	known      *int      // experts were chosen among so many; shared by the views
}

// NewRoutes implements [backend.MoEDevice].
func (d *Device) NewRoutes(rows, topK int) (backend.Routes, error) {
	n, err := product("routes", rows, topK)
	if err != nil {
		return nil, err
	}
	if d.closed {
		return nil, fmt.Errorf("cpu: routes: the device is closed")
	}
	return &Routes{dev: d, rows: rows, topK: topK, experts: make([]int32, n), weights: make([]float32, n), known: new(int)}, nil
}

// Shape implements [backend.Routes].
func (r *Routes) Shape() (rows, topK int) { return r.rows, r.topK }

// Top implements [backend.Routes]. A view of more rows than there are fails where it is used.
func (r *Routes) Top(n int) backend.Routes {
	v := *r
	v.rows = n
	return &v
}

func (p *Pass) routes(v backend.Routes) *Routes {
	own, ok := v.(*Routes)
	if !ok || own == nil || own.dev != p.dev {
		p.fail("routes are not of this device")
		return &Routes{topK: 1, known: new(int)}
	}
	if own.rows < 0 || own.rows*own.topK > len(own.experts) {
		p.fail("routes are a view of %d rows, which they do not have", own.rows)
	}
	return own
}

// Route implements [backend.MoEPass].
func (p *Pass) Route(r backend.Routes, logits, bias backend.Buffer, cfg backend.Router) {
	p.enter("route")
	routes, in := p.routes(r), p.buffer("logits", logits)
	p.want("rows of logits", in.rows, routes.rows)
	p.want("experts per row", cfg.TopK, routes.topK)
	if p.err == nil && cfg.TopK > in.cols {
		p.fail("%d of %d experts per row", cfg.TopK, in.cols)
	}
	var offset []float32
	if bias != nil && cfg.Softmax {
		p.fail("a softmax has no bias")
	}
	if bias != nil {
		b := p.vector("bias", bias)
		p.want("columns of bias", b.cols, in.cols)
		offset = b.first()
	}
	if p.err != nil {
		return
	}
	*routes.known = in.cols
	p.dev.ops.route = route{p.dev.kernels, routes, in, offset, cfg}
	p.run(&p.dev.ops.route, in.rows)
}

type route struct {
	kernels *kernels
	routes  *Routes
	logits  *Buffer
	bias    []float32
	cfg     backend.Router
}

func (o *route) do(w *worker, row int) {
	n, k := o.logits.cols, o.routes.topK
	w.row = grown(w.row, 2*n)
	scores, order := w.row[:n], w.row[n:2*n]
	experts, weights := o.routes.experts[row*k:(row+1)*k], o.routes.weights[row*k:(row+1)*k]
	var sum float32
	if o.cfg.Softmax {
		sum = o.softmax(scores, o.logits.row(row), experts)
	} else {
		sum = o.sigmoid(scores, order, o.logits.row(row), experts)
	}
	for rank, e := range experts {
		weights[rank] = backend.Flush(scores[e] / sum * o.cfg.Scale)
	}
}

// sigmoid scores every expert by itself and chooses by score and bias; it returns what the scores are divided by.
func (o *route) sigmoid(scores, order, logits []float32, experts []int32) float32 {
	o.kernels.sigmoid(scores, logits)
	copy(order, scores)
	for e, b := range o.bias {
		order[e] += b
	}
	rank(experts, order)
	if !o.cfg.Normalize {
		return 1
	}
	return chosen(scores, experts) + 1e-6
}

// softmax scores experts against each other and chooses by logit; it returns what the scores are divided by.
func (o *route) softmax(scores, logits []float32, experts []int32) (sum float32) {
	rank(experts, logits)
	copy(scores, logits)
	o.kernels.expSub(scores, logits[experts[0]])
	if o.cfg.Normalize {
		return chosen(scores, experts)
	}
	for _, s := range scores {
		sum += s
	}
	return sum
}

// rank chooses the experts that come first.
func rank(experts []int32, order []float32) {
	for rank := range experts {
		experts[rank] = int32(first(order, experts[:rank]))
	}
}

// chosen is the sum of the scores of experts.
func chosen(scores []float32, experts []int32) (sum float32) {
	for _, e := range experts {
		sum += scores[e]
	}
	return sum
}

// first is the expert that comes first and is not taken: the largest value, ties to the lower
// id. A NaN is above all, so that it is seen in the output instead of lost.
func first(order []float32, taken []int32) int {
	best := -1
next:
	for e, v := range order {
		for _, t := range taken {
			if int(t) == e {
				continue next
			}
		}
		if best < 0 || v > order[best] || v != v && order[best] == order[best] {
			best = e
		}
	}
	return best
}

// ExpertMatMul implements [backend.MoEPass].
func (p *Pass) ExpertMatMul(dst, x backend.Buffer, w backend.Weight, r backend.Routes) {
	p.enter("expert matmul")
	d, in, wt, routes := p.buffer("dst", dst), p.buffer("x", x), p.weight(w), p.routes(r)
	p.want("rows of dst", d.rows, routes.rows*routes.topK)
	p.want("columns of x", in.cols, wt.shape.Cols)
	p.want("columns of dst", d.cols, wt.shape.Rows)
	p.want("experts of w", wt.shape.Experts, *routes.known)
	if p.err == nil { // rows that this batch did not route may hold anything
		p.within("expert", routes.experts[:d.rows], wt.shape.Experts)
	}
	p.apart(d, in, "x")
	share := routes.topK
	if in.rows != routes.rows {
		share = 1
		p.want("rows of x", in.rows, d.rows)
	}
	if p.err != nil {
		return
	}
	p.labelled(wt)
	m := &p.dev.ops.matmul
	m.set(p.dev, wt, d, p.inputs(in, wt))
	m.share = share
	m.byExpert(routes)
	p.run(m, len(m.segments)*m.groups)
}

// byExpert makes a segment of every expert that a row chose: its (row, rank) pairs in order.
func (m *matmul) byExpert(r *Routes) {
	pairs := r.experts[:r.rows*r.topK]
	m.starts = append(m.starts[:0], make([]int32, *r.known+1)...)
	for _, e := range pairs {
		m.starts[e+1]++
	}
	for e := range *r.known {
		from, n := m.starts[e], m.starts[e+1]
		m.starts[e+1] += from
		if n > 0 {
			m.segments = append(m.segments, segment{e, int(from), int(from + n)})
		}
	}
	m.pairs = append(m.pairs[:0], pairs...)
	for i, e := range pairs {
		m.pairs[m.starts[e]] = int32(i)
		m.starts[e]++
	}
	m.entries = m.pairs
}

// Combine implements [backend.MoEPass].
func (p *Pass) Combine(dst, y backend.Buffer, r backend.Routes) {
	p.enter("combine")
	d, in, routes := p.buffer("dst", dst), p.buffer("y", y), p.routes(r)
	p.want("rows of routes", routes.rows, d.rows)
	p.want("rows of y", in.rows, d.rows*routes.topK)
	p.want("columns of y", in.cols, d.cols)
	p.apart(d, in, "y")
	if p.err != nil {
		return
	}
	p.dev.ops.combine = combine{p.dev.kernels, d, in, routes}
	p.run(&p.dev.ops.combine, d.rows)
}

type combine struct {
	kernels *kernels
	dst, y  *Buffer
	routes  *Routes
}

func (o *combine) do(_ *worker, row int) {
	dst, k := o.dst.row(row), o.routes.topK
	clear(dst)
	for rank := range k {
		weight, y := o.routes.weights[row*k+rank], o.y.row(row*k+rank)
		o.kernels.axpy(dst, y, weight)
	}
	o.kernels.divide(dst, dst, 1) // for its flush
}
