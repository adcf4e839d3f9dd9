package tokenizer

// merger is the working memory of one word: its symbols as a linked list, and the merges
// that are possible now in a heap. n symbols take O(n log n) steps, a run of a million
// letters included.
type merger struct {
	symbols []symbol
	heap    []candidate // the least first
	unk     bool        // an unknown character waits to be added
}

// symbol is one token of the word so far. A symbol that was merged into the one before it
// is dead.
type symbol struct {
	id         int32
	prev, next int32 // places in symbols; none at the ends
	dead       bool
}

// candidate is a merge that was possible when it was put into the heap.
type candidate struct {
	rank, at int32 // at: the left symbol
	id       int32 // what the two become
}

func (c candidate) less(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// push appends a symbol.
func (g *merger) push(id int32) {
	n := int32(len(g.symbols))
	if n > 0 {
		g.symbols[n-1].next = n
	}
	g.symbols = append(g.symbols, symbol{id: id, prev: n - 1, next: none})
}

// merge applies the merges, lowest rank first and leftmost of those, and appends the ids
// that are left to dst.
func (g *merger) merge(dst []int32, merges map[pair]merge) []int32 {
	g.heap = g.heap[:0]
	for i := range len(g.symbols) - 1 {
		g.offer(int32(i), merges)
	}
	for len(g.heap) > 0 {
		c := g.pop()
		left := &g.symbols[c.at]
		if left.dead || left.next == none {
			continue
		}
		right := &g.symbols[left.next]
		if m, ok := merges[pair{left.id, right.id}]; !ok || m.id != c.id {
			continue // one of the two has changed since
		}
		left.id, left.next, right.dead = c.id, right.next, true
		if left.next != none {
			g.symbols[left.next].prev = c.at
			g.offer(c.at, merges)
		}
		if left.prev != none {
			g.offer(left.prev, merges)
		}
	}
	for i := range g.symbols {
		if s := &g.symbols[i]; !s.dead {
			dst = append(dst, s.id)
		}
	}
	return dst
}

// offer puts the merge of the symbol at i and the next into the heap, if there is one.
func (g *merger) offer(i int32, merges map[pair]merge) {
	s := &g.symbols[i]
	if m, ok := merges[pair{s.id, g.symbols[s.next].id}]; ok {
		g.heap = append(g.heap, candidate{m.rank, i, m.id})
		g.up(len(g.heap) - 1)
	}
}

func (g *merger) pop() candidate {
	top, last := g.heap[0], len(g.heap)-1
	g.heap[0] = g.heap[last]
	g.heap = g.heap[:last]
	g.down(0)
	return top
}

func (g *merger) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !g.heap[i].less(g.heap[parent]) {
			return
		}
		g.heap[i], g.heap[parent] = g.heap[parent], g.heap[i]
		i = parent
	}
}

func (g *merger) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(g.heap) && g.heap[child].less(g.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		g.heap[i], g.heap[least] = g.heap[least], g.heap[i]
		i = least
	}
}
