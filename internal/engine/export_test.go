package engine

import (
	"time"

	"tfbatch/internal/backend"
	"tfbatch/internal/model"
)

// NewAt is New with another time than the machine's.
func NewAt(dev backend.Device, m model.Model, cfg Config, now func() time.Time) (*Engine, error) {
	return newEngine(dev, m, cfg, now)
}

// Balance is the account of e's ledger.
func (e *Engine) Balance() time.Duration {
	return time.Duration(e.policy.(*ledger).balance * float64(time.Second))
}
