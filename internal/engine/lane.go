package engine

import "slices"

// lane is one sequence that is being continued, in one place of the model's state.
type lane struct {
	index int32 // its place in the state
	req   *Request
	ids   []int32 // the prompt, then every committed token
	given int     // ids[:given] came with the request
	fed   int     // ids[:fed] are in the state; the rest are rows still to run
	limit int     // ids never grows past it
	pages []int32
	voice voice

	guess  []int32 // memory for the drafter's answer
	chance []float32
	trial  trial

	holding holding

	known bool // to Config.Drafter: open there
	told  int  // ids[:told] of those given are known to it
	taken int  // guesses of Config.Quick verified when it was last asked about the lane
	grant int  // guesses of Config.Drafter verified when it was last asked about the lane

	finish Finish
	err    error
}

// open gives the lane to r. What the lane held is used again.
func (l *lane) open(r *Request, limit int, pages []int32) {
	l.req, l.limit, l.pages = r, limit, pages
	l.ids, l.fed = append(append(l.ids[:0], r.Prompt...), r.Begun...), 0
	l.given = len(l.ids)
	l.finish, l.err = "", nil
	l.voice.open(r)
	for _, id := range r.Begun {
		l.voice.heard(id)
	}
	l.trial.end()
	l.known, l.grant, l.taken = false, 0, 0
}

func (l *lane) reply() []int32 { return l.ids[len(l.req.Prompt):] }

func (l *lane) done() bool { return l.finish != "" || l.err != nil }

// commit adds a drawn token, and ends the reply if it ends there. Tokens are looked at one
// by one, so a reply ends at the same place whatever was drafted around it.
func (l *lane) commit(id int32, eos []int32) {
	l.ids = append(l.ids, id)
	l.voice.heard(id)
	if l.req.Only != nil {
		l.req.Only.Push(id)
	}
	stopped := l.req.Stop != nil && l.req.Stop.Push(id)
	switch {
	case stopped, !l.req.Sampling.IgnoreEOS && slices.Contains(eos, id), slices.Contains(l.req.Sampling.StopIDs, id):
		l.finish = FinishStop
	case len(l.reply()) == l.req.MaxTokens:
		l.finish = FinishLength
	case len(l.ids) == l.limit:
		l.finish = FinishContext
	}
}
