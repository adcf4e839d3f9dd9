package grammar

// maxMasks is how many masks of one grammar are kept, about 64 MB for a vocabulary of 128,000.
const maxMasks = 4096

// Masks is a grammar over a vocabulary. Goroutines may share it.
type Masks struct {
	grammar *Grammar
	vocab   *Vocab
	known   map[expr][]uint64
}

// With holds a grammar to a vocabulary.
func (g *Grammar) With(v *Vocab) *Masks {
	return &Masks{grammar: g, vocab: v, known: map[expr][]uint64{}}
}

// Path is one reply on its way through a grammar.
type Path struct {
	masks *Masks
	at    expr
	err   error // of Push
}

// Start is the path of a reply that has no token yet.
func (m *Masks) Start() *Path { return &Path{masks: m, at: m.grammar.start} }

// Allowed is the ids that may come next, a bit each, lowest first. It is shared and must not be changed.
func (p *Path) Allowed() (bits []uint64, err error) {
	m := p.masks
	m.grammar.mu.Lock()
	defer m.grammar.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	if bits, ok := m.known[p.at]; ok {
		return bits, nil
	}
	defer m.grammar.pool.recover(&err)
	if bits, err = m.vocab.mask(&m.grammar.pool, p.at); err != nil {
		return nil, err
	}
	if len(m.known) == maxMasks {
		clear(m.known)
	}
	m.known[p.at] = bits
	return bits, nil
}

// Push takes a token of the reply. One that ends replies changes nothing.
func (p *Path) Push(id int32) {
	m := p.masks
	m.grammar.mu.Lock()
	defer m.grammar.mu.Unlock()
	defer m.grammar.pool.recover(&p.err)
	text := m.vocab.texts[id]
	for i := range len(text) {
		p.at = m.grammar.pool.step(p.at, text[i])
	}
}
