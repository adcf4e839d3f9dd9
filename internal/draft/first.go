package draft

import "context"

// First asks quick about every lane, and slow about the lanes for which quick had no guess.
// A copy is free where it is right, so a pass of a model is spent on the other lanes alone.
// quick must not be a [Watcher]; First is one where slow is.
func First(quick, slow Drafter) Drafter {
	f := &first{quick: quick, slow: slow}
	if w, ok := slow.(Watcher); ok {
		return &watchingFirst{first: f, Watcher: w}
	}
	return f
}

type first struct {
	quick, slow Drafter

	rest []Ask // for slow, and where they came from
	from []int
}

func (f *first) Open(lane int, prompt []int32) {
	f.quick.Open(lane, prompt)
	f.slow.Open(lane, prompt)
}

func (f *first) Propose(ctx context.Context, asks []Ask) error {
	if err := f.quick.Propose(ctx, asks); err != nil {
		return err
	}
	f.rest, f.from = f.rest[:0], f.from[:0]
	for i := range asks {
		if len(asks[i].IDs) == 0 {
			f.rest = append(f.rest, asks[i])
			f.from = append(f.from, i)
		}
	}
	if len(f.rest) == 0 {
		return nil
	}
	if err := f.slow.Propose(ctx, f.rest); err != nil {
		return err
	}
	for i, at := range f.from {
		asks[at].IDs, asks[at].Chance = f.rest[i].IDs, f.rest[i].Chance
	}
	return nil
}

func (f *first) Committed(lane int, ids []int32) {
	f.quick.Committed(lane, ids)
	f.slow.Committed(lane, ids)
}

func (f *first) Release(lane int) {
	f.quick.Release(lane)
	f.slow.Release(lane)
}

// watchingFirst drafts as first does and watches as slow does.
type watchingFirst struct {
	*first
	Watcher
}

func (f *watchingFirst) Open(lane int, prompt []int32) { f.first.Open(lane, prompt) }
func (f *watchingFirst) Propose(ctx context.Context, asks []Ask) error {
	return f.first.Propose(ctx, asks)
}
func (f *watchingFirst) Committed(lane int, ids []int32) { f.first.Committed(lane, ids) }
func (f *watchingFirst) Release(lane int)                { f.first.Release(lane) }
