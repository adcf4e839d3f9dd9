package kernels

// sharedHeads is the query heads that one threadgroup scores against a chunk, as in attend.metal.
const sharedHeads = 4

// PartBytes is the size of what a row's chunk leaves for merging.
func PartBytes(heads, dim int) int64 { return 4 * int64(heads) * int64(2+dim) }

// PartWork is the multiply-adds of a row's chunk.
func PartWork(heads, dim int) int64 { return 2 * pageKeys * int64(heads) * int64(dim) }

// Attend is the attention of rows rows of q [rows, heads·Dim] over at most chunks pages each.
// table is the first entry of each row's lane in pages; part is scratch of rows·chunks parts.
func Attend(dst, q Span, heads int, c Cache, pos, table, pages, part Span, rows, chunks int, scale float32) [2]Launch {
	kernel := &kAttendBf16
	if c.F32 {
		kernel = &kAttendF32
	}
	blocks := c.Heads * ceilDiv(heads/c.Heads, sharedHeads)
	n := rows * heads * c.Dim
	all := [2]Launch{
		launchAttend(kernel, [3]uint32{uint32(chunks), uint32(blocks), uint32(rows)}, q, c.Keys, c.Values, pos, table, pages, part, attendArgs{
			Heads: uint32(heads), Kv: uint32(c.Heads), Dim: uint32(c.Dim), Padded: uint32(c.Padded()), Chunks: uint32(chunks), Scale: scale,
		}),
		launchMerge(&kMerge, flat(n), part, pos, dst, mergeArgs{N: uint32(n), Heads: uint32(heads), Dim: uint32(c.Dim), Chunks: uint32(chunks)}),
	}
	all[0].Work = int64(rows) * int64(chunks) * PartWork(heads, c.Dim)
	return all
}
