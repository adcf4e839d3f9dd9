package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"tfbatch/internal/backend"
	"tfbatch/quant"
)

// BenchmarkDecode is a decode step of random weights in the shape of LFM2.5-24B-A2B: 30
// convolution and 10 attention layers, the first two with a dense feed-forward and the rest
// with 64 experts of which 4 are chosen, 4-bit but for the 6-bit head, 1024 keys a lane.
func BenchmarkDecode(b *testing.B) {
	d := device(b)
	defer d.Close()
	n := newNet(b, d)
	for _, lanes := range []int{1, 4, 8, 16} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) { n.bench(b, lanes) })
	}
}

const (
	netLayers, netDense, netEvery = 40, 2, 4 // every 4th layer attends
	netHidden, netVocab           = 2048, 128000
	netHeads, netKV, netDim       = 32, 8, 64
	netExperts, netTop, netWidth  = 64, 4, 1536
	netDenseWidth                 = 11776
	netLanes, netKeys, netRing    = 16, 1024, 32
)

// net is the weights and the state of a model.
type net struct {
	d                        backend.Device
	layers                   []netLayer
	head                     backend.Weight
	gain, headGain, taps     backend.Buffer
	rope, expertBias, hidden backend.Buffer
	kv                       backend.KV
	conv                     backend.Conv
	routes                   backend.Routes
	pages                    [][]int32
}

type netLayer struct {
	in, out, up, down backend.Weight
	gate              backend.Weight // nil for a dense feed-forward
}

func (l netLayer) dense() bool { return l.gate == nil }

func newNet(b *testing.B, d backend.Device) *net {
	four := quant.Format{Kind: quant.Affine, Bits: 4, Group: 64}
	weight := func(experts, rows, cols int, f quant.Format) backend.Weight {
		return benchWeight(b, d, backend.WeightShape{Experts: experts, Rows: rows, Cols: cols, Format: f})
	}
	n := &net{d: d, head: weight(1, netVocab, netHidden, quant.Format{Kind: quant.Affine, Bits: 6, Group: 64})}
	attends := 0
	for i := range netLayers {
		l := netLayer{in: weight(1, 3*netHidden, netHidden, four), out: weight(1, netHidden, netHidden, four)}
		if i%netEvery == netEvery-1 {
			attends++
			l.in = weight(1, (netHeads+2*netKV)*netDim, netHidden, four)
		}
		if i < netDense {
			l.up, l.down = weight(1, 2*netDenseWidth, netHidden, four), weight(1, netHidden, netDenseWidth, four)
		} else {
			l.up, l.down = weight(netExperts, 2*netWidth, netHidden, four), weight(netExperts, netHidden, netWidth, four)
			l.gate = weight(1, netExperts, netHidden, quant.Format{Kind: quant.BF16})
		}
		n.layers = append(n.layers, l)
	}
	buffer := func(rows, cols int) backend.Buffer { return must(d.NewBuffer(rows, cols))(b) }
	n.gain, n.headGain, n.taps = buffer(1, netHidden), buffer(1, netDim), buffer(netHidden, 3)
	n.rope, n.expertBias, n.hidden = buffer(netKeys, netDim), buffer(1, netExperts), buffer(netLanes, netHidden)
	n.kv = must(d.NewKV(backend.KVShape{Layers: attends, Pages: netLanes * netKeys / backend.PageKeys, Heads: netKV, Dim: netDim}))(b)
	n.conv = must(d.(backend.ConvDevice).NewConv(backend.ConvShape{Layers: netLayers, Lanes: netLanes, Channels: netHidden, Kernel: 3, Ring: netRing}))(b)
	n.routes = must(d.(backend.MoEDevice).NewRoutes(netLanes, netTop))(b)
	rng := rand.New(rand.NewPCG(9, 9))
	values := make([]float32, netLanes*netHidden)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	for _, buf := range []backend.Buffer{n.gain, n.headGain, n.taps, n.hidden} {
		rows, cols := buf.Shape()
		if err := d.Write(buf, values[:min(rows*cols, len(values))]); err != nil {
			b.Fatal(err)
		}
	}
	for l := range netLanes {
		var table []int32
		for p := range netKeys / backend.PageKeys {
			table = append(table, int32(l*netKeys/backend.PageKeys+p))
		}
		n.pages = append(n.pages, table)
	}
	return n
}

func (n *net) bench(b *testing.B, lanes int) {
	buffer := func(rows, cols int) backend.Buffer { return must(n.d.NewBuffer(rows, cols))(b) }
	x, h := buffer(lanes, netHidden), buffer(lanes, netHidden)
	wide, qkv, q := buffer(lanes, 3*netHidden), buffer(lanes, (netHeads+2*netKV)*netDim), buffer(lanes, netHeads*netDim)
	up, act := buffer(lanes, 2*netDenseWidth), buffer(lanes, netDenseWidth)
	logits, pairUp := buffer(lanes, netExperts), buffer(lanes*netTop, 2*netWidth)
	pairAct, pairDown := buffer(lanes*netTop, netWidth), buffer(lanes*netTop, netHidden)
	scores := buffer(lanes, netVocab)
	result := make([]float32, lanes*netVocab)
	routes := n.routes.Top(lanes)
	r := backend.Rows{Pages: n.pages}
	for l := range lanes {
		r.Lane, r.Pos = append(r.Lane, int32(l)), append(r.Pos, netKeys-1)
	}
	heads := backend.Heads{Q: netHeads, KV: netKV, Dim: netDim, QNorm: n.headGain, KNorm: n.headGain, Eps: 1e-5, Rope: n.rope}
	const eps = 1e-5
	step := func() {
		p := n.d.Begin()
		p.Gather(x, n.hidden, r.Lane)
		attends := 0
		for i, l := range n.layers {
			p.RMSNorm(h, x, n.gain, eps)
			if i%netEvery == netEvery-1 {
				p.MatMul(qkv, h, l.in)
				p.QKV(q, qkv, heads, n.kv, attends, r)
				p.Attend(h, q, n.kv, attends, r)
				attends++
			} else {
				p.MatMul(wide, h, l.in)
				p.(backend.ConvPass).ShortConv(h, wide, n.taps, nil, n.conv, i, r)
			}
			p.MatMul(q, h, l.out)
			p.Add(x, x, q)
			p.RMSNorm(h, x, n.gain, eps)
			if l.dense() {
				p.MatMul(up, h, l.up)
				p.SwiGLU(act, up)
				p.MatMul(q, act, l.down)
			} else {
				m := p.(backend.MoEPass)
				p.MatMul(logits, h, l.gate)
				m.Route(routes, logits, n.expertBias, backend.Router{TopK: netTop, Normalize: true, Scale: 1})
				m.ExpertMatMul(pairUp, h, l.up, routes)
				p.SwiGLU(pairAct, pairUp)
				m.ExpertMatMul(pairDown, pairAct, l.down, routes)
				m.Combine(q, pairDown, routes)
			}
			p.Add(x, x, q)
		}
		p.RMSNorm(h, x, n.gain, eps)
		p.MatMul(scores, h, n.head)
		p.Read(result, scores)
		if err := p.Commit(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	step() // compiles
	b.ResetTimer()
	for range b.N {
		step()
	}
	each := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(lanes)/each, "tokens/s")
	b.ReportMetric(each*1e3, "ms/step")
	b.ReportMetric(0, "ns/op")
}
