package cpu

import (
	"unsafe"

	"tfbatch/quant"
)

// kernels is what an instruction set offers. The functions of vector take multiples of
// [lanes] values ([squareChains] for squares); the methods of elementwise.go add the rest.
type kernels struct {
	isa       ISA
	tiles     [kinds]tiles // by quant.Kind, of dense weights
	affine    [maxBits + 1]tiles
	dot       [maxBits + 1]tiles // of affine weights in i8-v1
	attention [2]attentionSet    // bf16 and f32 pages
	vector    vector

	read func(p unsafe.Pointer, bytes int) // loads memory, for its speed; bytes is a multiple of 256
	peak func(turns int) (fma int)         // turns of independent fma, which are fma each

	// of i8-v1
	magnitude func(x []float32) (bits uint32)           // backend.Magnitude of a multiple of lanes
	codes     func(dst []int32, x []float32, r float32) // x·r to the nearest integers
	dotPeak   func(turns int) (macs int)                // like peak, of products of codes
}

// kinds is the number of dense weight formats.
const kinds = int(quant.F32) + 1

// maxBits is the widest affine code.
const maxBits = 8

// of finds the kernels of a weight format.
func (k *kernels) of(f quant.Format) *tiles {
	if f.Kind == quant.Affine {
		return &k.affine[f.Bits]
	}
	return &k.tiles[f.Kind]
}

// tiles are the matmul kernels of one weight format, by their number of rows.
type tiles struct {
	rows   int                      // the most rows of a kernel
	narrow [maxRows + 1]func(*tile) // one panel
	wide   [maxRows + 1]func(*tile) // panels[rows] of them; nil where one is best
	panels [maxRows + 1]int

	// unpack turns blocks of 32 codes of 16 outputs into codes of 8 bits, which the kernels then take; nil
	// where they take those that are stored.
	unpack func(dst, src unsafe.Pointer, blocks int)

	layout layout // of inputs in i8-v1
}

// tile is one call of a matmul kernel: a few rows times a few panels. A kernel has its
// number of rows and panels and the weight format in its name, the portable one reads them.
type tile struct {
	weights unsafe.Pointer     // the first panel
	stride  int                // bytes from panel to panel
	cols    int                // K
	width   int                // floats of a row of x
	unit    int                // inputs that belong to one chain: G of ARITHMETIC.md; words of codes in i8-v1
	chains  int                // S
	x       [maxRows]*float32  // the inputs of every row; as summed or rounded makes them where the weight is affine
	dst     [maxRows]*float32  // its first output
	sums    *[tileSums]float32 // scratch [chains][rows·panels][16]

	scaleBytes int // of each scale and bias of an affine weight: 2 for bf16, 4 for f32

	format       quant.Format
	rows, panels int
}

const (
	unit      = 64 // of a dense weight
	maxChains = 8
	maxRows   = 8  // rows that share a weight while it is in a register
	maxPanels = 4  // panels that share an input while it is in a register
	maxTile   = 16 // rows·panels at most
	tileSums  = maxChains * maxTile * panelRows
)

// attentionSet are the attention kernels of one page format, by their number of queries.
type attentionSet struct {
	scores, values [maxGroup + 1]func(*attention)
}

// attention is one call of an attention kernel: query heads that share a KV head, over the
// keys of one page. K lies as [dim][PageKeys], V as [PageKeys][width].
type attention struct {
	q     *float32       // [queries][dim]
	k, v  unsafe.Pointer // bf16 or f32
	s     *float32       // [queries][PageKeys]: scores, then weights
	o     *float32       // [queries][width]: weighted sums of values
	l     *float32       // [queries]: sums of weights
	dim   int
	width int // dim rounded up to a multiple of lanes
	keys  int
	scale float32

	f32     bool
	queries int
}

const (
	maxGroup = 4  // queries that share a key while it is in a register
	lanes    = 16 // floats that a kernel handles at once, in one register or several
)

// vector is the elementwise part. Results are flushed, except sums and weights of attention.
type vector struct {
	squares func(sums *[squareChains]float32, x []float32) // sum_j = fma(x_k, x_k, sum_j), j = k mod 32
	scale   func(dst, x, gain []float32, r float32)        // (x·r)·gain
	add     func(dst, a, b []float32)                      // a + b
	mul     func(dst, a, b []float32)                      // a·b
	axpy    func(sum, x []float32, a float32)              // sum = fma(a, x, sum)
	tap     func(sum, w, u []float32)                      // sum = fma(w, u, sum)
	rotate  func(a, b, cos, sin []float32)                 // fma(-b, sin, a·cos), fma(a, sin, b·cos)
	swiglu  func(dst, g, u []float32)                      // silu(g)·u
	sigmoid func(dst, x []float32)                         // 1 / (1 + exp(-x))
	maximum func(x []float32) float32                      // the largest; anything where one is a NaN
	expSub  func(x []float32, m float32)                   // x = exp(x - m)
	merge   func(sum, part []float32, a, b float32)        // sum = fma(sum, a, part·b)
	divide  func(dst, x []float32, d float32)              // x / d
}

// squareChains is the number of sums of a norm.
const squareChains = 32
