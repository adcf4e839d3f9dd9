package engine

import "time"

// SetClock gives e another time than the machine's.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }

// Balance is the account of e's ledger.
func (e *Engine) Balance() time.Duration {
	return time.Duration(e.policy.(*ledger).balance * float64(time.Second))
}
