package kernels

// Cache is one layer of a pool of KV pages of 256 keys: keys [page][head][dim/8][256][8],
// values [page][head][256][padded], in bf16 or f32.
type Cache struct {
	Keys, Values Span
	Heads, Dim   int
	F32          bool
}

// MaxDim is the largest head that the kernels hold.
const MaxDim = 256

// Padded is the width of a value in a page.
func (c Cache) Padded() int { return ceilDiv(c.Dim, 8) * 8 }

// PageBytes is the size of one page of one layer, of keys or of values.
func (c Cache) PageBytes() int64 {
	size := int64(2)
	if c.F32 {
		size = 4
	}
	return size * int64(c.Heads) * int64(c.Padded()) * pageKeys
}

// pageKeys is the keys of a page, as in attend.metal.
const pageKeys = 256

// Norms are the gains of q and k, or empty spans.
type Norms struct {
	Q, K Span
	Eps  float32
}

const (
	normQ       = 1
	normK       = 2
	interleaved = 4
)

// headsPerGroup is the heads of a threadgroup, as in qkv.metal.
const headsPerGroup = 4

// QKV norms and turns the heads of rows rows of qkv, writes q and stores k and v. pages is
// the page of every row; a launch without query heads ignores q.
func QKV(q, qkv Span, heads int, n Norms, rope Span, pairs bool, c Cache, pos, pages Span, rows int) Launch {
	args := qkvArgs{Q: uint32(heads), Kv: uint32(c.Heads), Dim: uint32(c.Dim), Padded: uint32(c.Padded()), Eps: n.Eps}
	args.Flags = flag(n.Q.Mem != nil)*normQ | flag(n.K.Mem != nil)*normK | flag(pairs)*interleaved
	kernel := &kQkvBf16
	if c.F32 {
		kernel = &kQkvF32
	}
	grid := [3]uint32{uint32(ceilDiv(heads+2*c.Heads, headsPerGroup)), uint32(rows), 1}
	return launchQkv(kernel, grid, qkv, n.Q, n.K, rope, pos, pages, q, c.Keys, c.Values, args)
}
