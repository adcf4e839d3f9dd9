package nn

import "tfbatch/internal/backend"

// arena makes what a state needs on dev and adds up its size. Without a device it only adds up: a
// footprint is exact because the code that allocates counts it. The first error sticks.
type arena struct {
	dev   backend.Device
	bytes int64
	err   error
}

// make calls f unless the arena only counts or has failed.
func (a *arena) make(bytes int64, f func() error) {
	a.bytes += bytes
	if a.dev != nil && a.err == nil {
		a.err = f()
	}
}

// buffer is nil where a model has no use for it: with no rows or no columns.
func (a *arena) buffer(rows, cols int) (b backend.Buffer) {
	if rows == 0 || cols == 0 {
		return nil
	}
	a.make(4*int64(rows)*int64(cols), func() (err error) {
		b, err = a.dev.NewBuffer(rows, cols)
		return err
	})
	return b
}

// kv is nil for a model without attention.
func (a *arena) kv(s backend.KVShape) (kv backend.KV) {
	if s.Layers == 0 {
		return nil
	}
	element := int64(2)
	if s.F32 {
		element = 4
	}
	keys := int64(s.Layers) * int64(s.Pages) * backend.PageKeys
	a.make(2*element*keys*int64(s.Heads)*int64(s.Dim), func() (err error) {
		kv, err = a.dev.NewKV(s)
		return err
	})
	return kv
}

// conv is nil for a model without convolutions.
func (a *arena) conv(s backend.ConvShape) (c backend.Conv) {
	if s.Layers == 0 {
		return nil
	}
	rows := int64(s.Layers) * int64(s.Lanes) * int64(s.Ring)
	a.make(4*rows*int64(s.Channels), func() (err error) {
		c, err = a.dev.(backend.ConvDevice).NewConv(s)
		return err
	})
	return c
}

// routes is nil for a model without experts.
func (a *arena) routes(rows, topK int) (r backend.Routes) {
	if topK == 0 {
		return nil
	}
	a.make(8*int64(rows)*int64(topK), func() (err error) { // an id and a weight each
		r, err = a.dev.(backend.MoEDevice).NewRoutes(rows, topK)
		return err
	})
	return r
}
