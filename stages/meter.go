package stages

import "sync/atomic"

// Meter tells how far a run is, from any goroutine. The zero value is ready.
type Meter struct {
	// Stepped, if not nil, is called on the engine's goroutine after every round with the
	// number of replies that are running. It is set before the run.
	Stepped func(active int)

	read, bytes, size           atomic.Int64
	all                         atomic.Bool
	rows, errors, prompt, drawn atomic.Int64
	earlier, total              atomic.Int64
	earlierRows, earlierErrors  atomic.Int64
}

// Reading is what a meter shows at one moment.
type Reading struct {
	Rows, Errors                   int64 // done: written, or ready and waiting for their turn
	NewRows, NewErrors             int64 // of these, those of this run
	PromptTokens, CompletionTokens int64 // of the rows done
	Earlier                        int64 // of these tokens, those that earlier runs drew
	Read                           int64 // rows read so far
	Total                          int64 // rows of the input: exact once it was read, before that an estimate, 0 when unknown
	Exact                          bool
}

// Read takes a reading.
func (m *Meter) Read() Reading {
	r := Reading{
		Rows: m.rows.Load(), Errors: m.errors.Load(),
		PromptTokens: m.prompt.Load(), CompletionTokens: m.drawn.Load(), Earlier: m.earlier.Load(),
		Read: m.read.Load(), Exact: m.all.Load(),
	}
	r.NewRows, r.NewErrors = max(0, r.Rows-m.earlierRows.Load()), max(0, r.Errors-m.earlierErrors.Load())
	bytes, size := m.bytes.Load(), m.size.Load()
	switch {
	case r.Exact:
		r.Total = r.Read
	case m.total.Load() > 0:
		r.Total, r.Exact = m.total.Load(), true
	case bytes > 0 && size > 0:
		r.Total = max(r.Read, int64(float64(r.Read)*float64(size)/float64(bytes)))
	}
	return r
}

func (m *Meter) readTo(rows, bytes, size int64) {
	m.read.Store(rows)
	m.bytes.Store(bytes)
	m.size.Store(size)
}

func (m *Meter) readAll(rows int64) {
	m.read.Store(rows)
	m.all.Store(true)
}

func (m *Meter) stepped(active int) {
	if m.Stepped != nil {
		m.Stepped(active)
	}
}

// begin takes over what earlier runs did, and how many rows there are if that is known.
func (m *Meter) begin(c *Counts, total int64) {
	m.earlier.Store(c.CompletionTokens)
	m.earlierRows.Store(c.Rows)
	m.earlierErrors.Store(c.Errors)
	m.total.Store(total)
	m.done(c)
}

// done takes over the totals of write.
func (m *Meter) done(c *Counts) {
	m.rows.Store(c.Rows)
	m.errors.Store(c.Errors)
	m.prompt.Store(c.PromptTokens)
	m.drawn.Store(c.CompletionTokens)
}
