package kernels

// Groups are (row, rank) pairs sorted by expert and cut into blocks.
type Groups struct {
	IDs    Span // [pairs] the expert of every pair
	Order  Span // [pairs] the pairs by expert
	Blocks Span // [3·MaxBlocks(pairs, experts)]
	Pairs  int
}

// fewPairs is up to where pairs go one by one: grouping costs a launch and few share an expert.
const fewPairs = 16

// manyShare is from how many pairs an expert on average large blocks are filled.
const manyShare = 4

// blockSize is the most pairs of a block, and its place in formatKernels.block.
func blockSize(pairs, experts int) (size, place int) {
	if pairs >= manyShare*experts {
		return 8, 1
	}
	return 2, 0
}

// MaxBlocks is the room that pairs of so many experts need, in blocks of 12 bytes.
func MaxBlocks(pairs, experts int) int {
	size, _ := blockSize(pairs, experts)
	return min(pairs, ceilDiv(pairs, size)+experts)
}

// Group sorts the pairs of g. It gives no launch where none of them will be needed.
func Group(g Groups, experts int) []Launch {
	if g.Pairs <= fewPairs {
		return nil
	}
	size, _ := blockSize(g.Pairs, experts)
	return []Launch{launchGroup(&kGroup, [3]uint32{1, 1, 1}, g.IDs, g.Order, g.Blocks, groupArgs{
		Pairs: uint32(g.Pairs), Experts: uint32(experts), Size: uint32(size), Blocks: uint32(MaxBlocks(g.Pairs, experts)),
	})}
}

// ExpertMatMul is y [pairs, w.Rows] from x, each pair with its expert's matrix; share pairs
// use one row of x. sums is scratch of w.SumBytes of x's rows.
func ExpertMatMul(y, x, sums Span, w Weight, g Groups, share int) []Launch {
	k, err := kernelsFor(w.Format)
	if err != nil {
		panic("kernels: expert matmul: " + err.Error()) // Layout.Check refused it
	}
	_, place := blockSize(g.Pairs, w.Experts)
	s, blocks := k.block[place], MaxBlocks(g.Pairs, w.Experts)
	switch {
	case w.Cols%runInputs != 0:
		s, blocks = shape{1, 1, k.oddExpert}, g.Pairs
	case g.Pairs <= fewPairs:
		s, blocks = choose(k.pair, g.Pairs, w.tiles()), g.Pairs
	}
	grid := [3]uint32{uint32(ceilDiv(w.tiles(), s.tiles)), uint32(blocks), 1}
	args := expertArgs{
		Outs: uint32(w.Rows), Cols: uint32(w.Cols), Units: uint32(w.units()), Runs: uint32(w.runs()), Chains: uint32(w.chains()),
		Scales: scaleKind(w.ScaleKind), Tiles: uint32(w.tiles()), Share: uint32(share),
	}
	rows := g.Pairs / share
	return append(unitSums(sums, x, w.Layout, rows, s), launchExpert(s.kernel, grid, w.Codes, w.Scales, x, sums, g.IDs, g.Order, g.Blocks, y, args))
}
