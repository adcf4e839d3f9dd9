package cpu

import (
	"unsafe"

	"tfbatch/internal/backend"
)

// worker is the scratch memory of one thread.
type worker struct {
	tile    tile
	spill   [maxTile * panelRows]float32 // outputs of a panel that does not fit its row
	squares [squareChains]float32

	attention attention
	scores    []float32 // [maxGroup][PageKeys]
	part      []float32 // [maxGroup][width], of one page
	partSums  [maxGroup]float32
	row       []float32 // a row of any operator that needs a copy
	unpacked  []float32 // panels of a piece of a matmul, in 8 bits
	codes     [maxGroupInputs]int32
}

func newWorker() *worker {
	w := &worker{scores: aligned(maxGroup * backend.PageKeys)}
	w.tile.sums = (*[tileSums]float32)(aligned(tileSums))
	return w
}

// aligned is a slice that starts on a cache line, so that no vector straddles two.
func aligned(n int) []float32 {
	const line = 64 / 4
	s := make([]float32, n+line)
	skip := (line - int(uintptr(unsafe.Pointer(&s[0]))/4%line)) % line
	return s[skip : skip+n : skip+n]
}

// grown is s with at least n values, whose contents are not kept.
func grown(s []float32, n int) []float32 {
	if len(s) < n {
		return aligned(n)
	}
	return s
}
