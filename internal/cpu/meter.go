package cpu

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// Meter counts what the operators of a device's passes take and what they need at least.
type Meter struct {
	limits Limits
	spent  map[string]*Spent
	now    *Spent // of the operator that runs
}

// Spent is what the operators of one kind took. Least is the time that they would take at the limits of the
// machine: of reading their weights, keys and values, or of their multiply-adds, whichever is longer.
type Spent struct {
	Op          string
	Calls       int
	Took, Least time.Duration
	Bytes, MACs int64
}

// Share is how near to the limits it came; zero where there is no bound worth the name.
func (s Spent) Share() float64 {
	if s.Took == 0 {
		return 0
	}
	return float64(s.Least) / float64(s.Took)
}

// Limits are what a machine can do at best, in bytes and multiply-adds a second.
type Limits struct {
	Read     float64 // of memory
	FMA      float64
	Products float64 // of the codes of i8-v1
}

// Watch makes a meter that hears of every operator from now on. The goroutine of the passes owns it.
func (d *Device) Watch(l Limits) *Meter {
	d.meter = &Meter{limits: l, spent: map[string]*Spent{}}
	return d.meter
}

// Take returns what was spent since the last call, the longest first.
func (m *Meter) Take() []Spent {
	var all []Spent
	for _, s := range m.spent {
		all = append(all, *s)
	}
	clear(m.spent)
	slices.SortFunc(all, func(a, b Spent) int {
		if a.Took != b.Took {
			return int(b.Took - a.Took)
		}
		return strings.Compare(a.Op, b.Op)
	})
	return all
}

// of is where an operator's time goes.
func (m *Meter) of(op string) *Spent {
	s := m.spent[op]
	if s == nil {
		s = &Spent{Op: op}
		m.spent[op] = s
	}
	return s
}

// need adds work to the running operator.
func (m *Meter) need(bytes, macs int64, rate float64) {
	s := m.now
	s.Bytes, s.MACs = s.Bytes+bytes, s.MACs+macs
	s.Least += time.Duration(1e9 * max(float64(bytes)/m.limits.Read, float64(macs)/rate))
}

// metered runs a task and books its time.
func (p *Pass) metered(t task, pieces int) {
	m := p.dev.meter
	m.now = m.of(p.label)
	m.now.Calls++
	start := time.Now()
	p.dev.pool.run(t, pieces)
	m.now.Took += time.Since(start)
	switch t := t.(type) {
	case *matmul:
		m.product(t)
	case *attend:
		m.attention(t)
	}
}

// product books a matrix product: the weights of every expert that was used, once.
func (m *Meter) product(t *matmul) {
	rate, rows := m.limits.FMA, 0
	if t.int8 {
		rate = m.limits.Products
	}
	experts := map[int]bool{}
	for _, s := range t.segments {
		experts[s.expert], rows = true, rows+s.to-s.from
	}
	shape := t.w.shape
	m.need(int64(len(experts)*t.w.panels*t.w.stride), int64(rows)*int64(shape.Rows)*int64(shape.Cols), rate)
}

// attention books the keys and values of every row: their bytes for each KV head, their products for each query head.
func (m *Meter) attention(t *attend) {
	var keys int64
	for _, pos := range t.r.Pos {
		keys += int64(pos) + 1
	}
	perHead := 2 * keys * int64(t.kv.shape.Dim)
	heads := int64(t.kv.shape.Heads)
	m.need(0, perHead*heads*int64(t.group), m.limits.FMA) // rows of a lane share what they read, in a cache
}

// preparing runs the task that makes the inputs of a product, under a name of its own.
func (p *Pass) preparing(t task, pieces int) {
	label := p.label
	p.label = "inputs of products"
	p.run(t, pieces)
	p.label = label
}

// labelled names a product by what it multiplies with.
func (p *Pass) labelled(w *Weight) {
	if p.dev.meter == nil || p.err != nil {
		return
	}
	f := w.shape.Format
	p.label = fmt.Sprintf("%s %v [%d, %d]", p.op, f, w.shape.Rows, w.shape.Cols)
	if p.dev.int8 && f.Kind == quant.Affine {
		p.label += " i8"
	}
}

// MachineLimits measures the limits of a device's threads, as medians. It takes about half a second.
func MachineLimits(o Options) (Limits, error) {
	d, err := Open(o)
	if err != nil {
		return Limits{}, err
	}
	defer d.Close()
	w, err := d.NewWeight(backend.WeightShape{Experts: 1, Rows: limitSide, Cols: limitSide, Format: quant.Format{Kind: quant.F32}})
	if err != nil {
		return Limits{}, err
	}
	l := newLimit(d, w.(*Weight))
	for i := range l.bytes {
		l.bytes[i] = 1 // a page that nobody wrote to is no memory yet
	}
	var read, fma, products []float64
	for range 21 {
		read = append(read, float64(len(l.bytes))/seconds(l.read))
		fma = append(fma, l.work(l.fma)/seconds(l.compute))
		products = append(products, l.work(l.macs)/seconds(l.multiply))
	}
	return Limits{median(read), median(fma), median(products)}, nil
}

// limitSide is that of a matrix much larger than a cache: 256 MiB in f32.
const limitSide = 8192
