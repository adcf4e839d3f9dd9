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
// use one row of x. sums is scratch of w.SumBytes of x's rows. Launches are of at most `most`
// multiply-adds where a block of pairs has no more.
func ExpertMatMul(y, x, sums Span, w Weight, g Groups, share int, most int64) []Launch {
	k, err := kernelsFor(w.Format)
	if err != nil {
		panic("kernels: expert matmul: " + err.Error()) // Layout.Check refused it
	}
	args := expertArgs{
		Outs: uint32(w.Rows), Cols: uint32(w.Cols), Units: uint32(w.units()), Runs: uint32(w.runs()), Chains: uint32(w.chains()),
		Scales: scaleKind(w.ScaleKind), Tiles: uint32(w.tiles()), Share: uint32(share),
	}
	e := expertMatMul{w, y, x, sums, g, args}
	switch {
	case w.Cols%runInputs != 0:
		return e.pairs(shape{1, 1, k.oddExpert}, most)
	case g.Pairs <= fewPairs:
		return e.pairs(choose(k.pair, g.Pairs, w.tiles()), most)
	}
	size, place := blockSize(g.Pairs, w.Experts)
	return append(unitSums(sums, x, w.Layout, g.Pairs/share, k.block[place]), e.blocks(k.block[place], size, most)...)
}

// expertMatMul is what all launches of a product share.
type expertMatMul struct {
	w          Weight
	y, x, sums Span
	g          Groups
	args       expertArgs
}

// pairs takes pair by pair. Cuts are between rows of x.
func (e expertMatMul) pairs(s shape, most int64) []Launch {
	var all []Launch
	share := int(e.args.Share)
	for c := range cuts(e.g.Pairs/share, most/(int64(share)*e.w.rowWork()), 1) {
		part, pair := e, int64(c.first*share)
		part.g.IDs, part.y = e.g.IDs.From(4*pair), e.y.From(4*pair*int64(e.w.Rows))
		part.x = e.x.From(4 * int64(c.first) * int64(e.w.Cols))
		all = append(all, part.launch(s, c.count*share, c.count*share))
	}
	return all
}

// blocks takes block by block of up to size pairs.
func (e expertMatMul) blocks(s shape, size int, most int64) []Launch {
	var all []Launch
	for c := range cuts(MaxBlocks(e.g.Pairs, e.w.Experts), most/(int64(size)*e.w.rowWork()), 1) {
		part := e
		part.g.Blocks = e.g.Blocks.From(12 * int64(c.first))
		all = append(all, part.launch(s, c.count, c.count*size))
	}
	return all
}

func (e expertMatMul) launch(s shape, blocks, pairs int) Launch {
	grid := [3]uint32{uint32(ceilDiv(e.w.tiles(), s.tiles)), uint32(blocks), 1}
	l := launchExpert(s.kernel, grid, e.w.Codes, e.w.Scales, e.x, e.sums, e.g.IDs, e.g.Order, e.g.Blocks, e.y, e.args)
	l.Work = int64(min(pairs, e.g.Pairs)) * e.w.rowWork()
	return l
}
