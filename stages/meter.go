package stages

import "sync/atomic"

// Meter tells how far a run is, from any goroutine. The zero value is ready.
type Meter struct {
	// Stepped, if not nil, is called on the engine's goroutine after every round with the
	// number of replies that are running. It is set before the run.
	Stepped func(active int)

	rows, bytes, size                atomic.Int64
	all                              atomic.Bool
	done, errors, replies, generated atomic.Int64
	prompt                           atomic.Int64
}

// Reading is what a meter shows at one moment.
type Reading struct {
	Rows, Errors, Replies          int64 // written
	PromptTokens, CompletionTokens int64 // of the rows written
	Read                           int64 // rows read so far
	Total                          int64 // rows of the input: exact once it was read, before that an estimate, 0 when unknown
	Exact                          bool
}

// Read takes a reading.
func (m *Meter) Read() Reading {
	r := Reading{
		Rows: m.done.Load(), Errors: m.errors.Load(), Replies: m.replies.Load(),
		PromptTokens: m.prompt.Load(), CompletionTokens: m.generated.Load(),
		Read: m.rows.Load(), Exact: m.all.Load(),
	}
	bytes, size := m.bytes.Load(), m.size.Load()
	switch {
	case r.Exact:
		r.Total = r.Read
	case bytes > 0 && size > 0:
		r.Total = max(r.Read, int64(float64(r.Read)*float64(size)/float64(bytes)))
	}
	return r
}

func (m *Meter) readTo(rows, bytes, size int64) {
	m.rows.Store(rows)
	m.bytes.Store(bytes)
	m.size.Store(size)
}

func (m *Meter) readAll(rows int64) {
	m.rows.Store(rows)
	m.all.Store(true)
}

func (m *Meter) stepped(active int) {
	if m.Stepped != nil {
		m.Stepped(active)
	}
}

// wrote takes over the totals of write.
func (m *Meter) wrote(c *Counts) {
	m.done.Store(c.Rows)
	m.errors.Store(c.Errors)
	m.replies.Store(c.Replies)
	m.prompt.Store(c.PromptTokens)
	m.generated.Store(c.CompletionTokens)
}
