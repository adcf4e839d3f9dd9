package kernels

import "tfbatch/quant"

// Groups are (row, rank) pairs sorted by expert and cut into blocks.
type Groups struct {
	IDs    Span // [pairs] the expert of every pair
	Order  Span // [pairs] the pairs by expert
	Blocks Span // [3·MaxBlocks(pairs, experts)]
	Pairs  int
}

// blockPairs is the pairs of a block, as in expert.metal.
const blockPairs = 4

// fewPairs is up to where pairs go one by one: grouping costs a launch and few share an expert.
const fewPairs = 16

// MaxBlocks is the room that pairs of so many experts need, in blocks of 12 bytes.
func MaxBlocks(pairs, experts int) int {
	return min(pairs, ceilDiv(pairs, blockPairs)+experts)
}

// Group sorts the pairs of g. It gives no launch where none of them will be needed.
func Group(g Groups, experts int) []Launch {
	if g.Pairs <= fewPairs {
		return nil
	}
	return []Launch{launchGroup(&kGroup, [3]uint32{1, 1, 1}, g.IDs, g.Order, g.Blocks, groupArgs{
		Pairs: uint32(g.Pairs), Experts: uint32(experts), Size: blockPairs, Blocks: uint32(MaxBlocks(g.Pairs, experts)),
	})}
}

// ExpertSumBytes is the size of the scratch that ExpertMatMul needs for rows rows of x.
func (l Layout) ExpertSumBytes(g Groups, rows int) int64 {
	if g.Pairs <= fewPairs || l.Format.Kind != quant.Affine {
		return 0
	}
	return 4 * int64(rows) * int64(l.units())
}

// ExpertMatMul is y [pairs, w.Rows] from x, each pair with its expert's matrix; share pairs
// use one row of x. sums is scratch of w.ExpertSumBytes.
func ExpertMatMul(y, x, sums Span, w Weight, g Groups, share int) []Launch {
	k, err := kernelsFor(w.Format)
	if err != nil {
		panic("kernels: expert matmul: " + err.Error()) // Layout.Check refused it
	}
	kernel, blocks := k.block, MaxBlocks(g.Pairs, w.Experts)
	switch {
	case w.Cols%runInputs != 0:
		kernel, blocks = k.oddExpert, g.Pairs
	case g.Pairs <= fewPairs:
		kernel, blocks = k.pair, g.Pairs
	}
	grid := [3]uint32{uint32(w.tiles()), uint32(blocks), 1}
	args := expertArgs{
		Outs: uint32(w.Rows), Cols: uint32(w.Cols), Units: uint32(w.units()), Runs: uint32(w.runs()), Chains: uint32(w.chains()),
		Scales: scaleKind(w.ScaleKind), Tiles: uint32(w.tiles()), Share: uint32(share),
	}
	return append(unitSums(sums, x, w.Layout, g.Pairs/share), launchExpert(kernel, grid, w.Codes, w.Scales, x, sums, g.IDs, g.Order, g.Blocks, y, args))
}
