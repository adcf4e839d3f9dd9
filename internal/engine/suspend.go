package engine

import "slices"

// Suspend takes r out of its lane, between two steps, and returns the tokens of its reply so far. A request that has
// them as Begun goes on where this one stopped, in any lane of any engine of the model: what a lane holds, and what
// a drafter knows of it, is a function of its ids, so a snapshot is the ids and restoring one is reading them again.
// It is false for a request that has no lane.
func (e *Engine) Suspend(r *Request) (begun []int32, ok bool) {
	i := slices.IndexFunc(e.lanes, func(l *lane) bool { return l.req == r })
	if i < 0 {
		return nil, false
	}
	l := e.lanes[i]
	begun = slices.Clone(l.reply())
	e.release(l)
	e.lanes = slices.Delete(e.lanes, i, i+1)
	return begun, true
}
