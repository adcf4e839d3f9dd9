package kernels

import (
	"testing"

	"tfbatch/quant"
)

// TestCutsTakeEveryRowOnce adds up the launches of products that are cut: each is as short as it can be, and
// together they write every row once.
func TestCutsTakeEveryRowOnce(t *testing.T) {
	l := Layout{Format: quant.Format{Kind: quant.BF16}, Experts: 3, Rows: 40, Cols: 64}
	w := Weight{Layout: l}
	const each = 40 * 64
	for _, rows := range []int{1, 2, 7, 8, 9, 33} {
		for _, most := range []int64{1, each, 3 * each, 9 * each, 20 * each, 1 << 40} {
			next, work := int64(0), int64(0)
			for _, launch := range MatMul(Span{Len: 4 * 40 * int64(rows)}, Span{Len: 4 * 64 * int64(rows)}, Span{}, w, rows, most) {
				y := launch.Buffers[len(launch.Buffers)-1]
				if y.Off != 4*40*next || launch.Work%each != 0 || launch.Work > max(most, each) {
					t.Errorf("%d rows, at most %d: a launch of %d from byte %d, after %d rows", rows, most, launch.Work, y.Off, next)
				}
				next, work = next+launch.Work/each, work+launch.Work
			}
			if work != int64(rows)*each {
				t.Errorf("%d rows, at most %d: work of %d, want %d", rows, most, work, rows*each)
			}
			for _, share := range []int{1, 4} {
				checkPairs(t, w, rows, share, most)
			}
		}
	}
}

// checkPairs wants every block of pairs, or every pair where they go one by one, in one launch.
func checkPairs(t *testing.T, w Weight, rows, share int, most int64) {
	t.Helper()
	pairs := rows * share
	want := uint32(pairs)
	if pairs > fewPairs {
		want = uint32(MaxBlocks(pairs, w.Experts))
	}
	got := uint32(0)
	for _, launch := range ExpertMatMul(Span{}, Span{}, Span{}, w, Groups{Pairs: pairs}, share, most) {
		got += launch.Grid[1]
		if size, _ := blockSize(pairs, w.Experts); launch.Work > max(most, int64(max(size, share))*w.rowWork()) {
			t.Errorf("%d pairs, at most %d: a launch of %d", pairs, most, launch.Work)
		}
	}
	if got != want {
		t.Errorf("%d pairs, at most %d: %d blocks, want %d", pairs, most, got, want)
	}
}
