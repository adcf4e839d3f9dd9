package engine

// verify draws the tokens of every span, keeps the guesses that equal them, and moves the
// lanes on.
func (e *Engine) verify() {
	for i := range e.spans {
		s := &e.spans[i]
		s.lane.fed += s.feed
		if s.head >= 0 {
			e.commit(s)
		}
	}
}

// commit goes down the rows of a span: a row's draw is a token of the reply, and the next
// row counts only while its guess was that token. So a row's history is the committed one
// when it is drawn, and each round commits at least one token. The state needs no cut: the
// rows past the last kept guess are placed again by the next forward.
func (e *Engine) commit(s *span) {
	l := s.lane
	before := len(l.ids)
	e.round.guesses += len(s.guess)
	for depth := range s.guess {
		e.stats.Guessed[depth]++
	}
	for row := 0; ; row++ {
		id, err := e.drawer.draw(&l.voice, len(l.ids), e.row(s.head+row))
		if err != nil {
			l.err = err
			break
		}
		l.commit(id, e.info.EOS)
		if l.done() || row == len(s.guess) || s.guess[row] != id {
			break
		}
		l.fed++
		e.round.kept++
		e.stats.Kept[row]++
	}
	s.drawn = len(l.ids) - before
	e.round.tokens += s.drawn
	if l.done() {
		return
	}
	e.tell(l, l.ids[before:])
}

// row is the logits of a wanted row. [vocab]
func (e *Engine) row(head int) []float32 {
	return e.logits[head*e.info.Vocab:][:e.info.Vocab]
}
