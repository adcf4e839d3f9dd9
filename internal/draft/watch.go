package draft

import "tfbatch/internal/backend"

// Watcher is a Drafter that guesses from the target's residual stream. The engine asks for its taps when it
// makes the target's state and calls Watch in every forward with rows of an open lane, whether or not it asks
// for guesses: a context with a gap would be worth nothing. A lane that will not be asked about again may be
// released while it goes on, and one that never will be is not opened.
type Watcher interface {
	Drafter
	// Taps are the layers whose output it reads, ascending.
	Taps() []int
	// Watch takes the rows of a forward while it is being recorded on p, after the target has recorded its
	// own part: taps is model.Out.Taps and the target's again once p has run. Rows of a lane replace what was
	// seen at their positions before. Which of them stand is what Committed says of the lane after the
	// forward; those past its last committed id were wrong guesses. Rows of lanes that are not open are
	// passed over.
	Watch(p backend.Pass, taps backend.Buffer, r backend.Rows) error
}

// Seedable is a Watcher that can be tried on a prompt itself: the lane is opened with the first part of it, asked about
// when the target has read that, and told the rest by Committed.
type Seedable interface {
	Watcher
	Seedable()
}
